package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

const (
	storageAllowance = 2 * time.Minute // what an attempt may take in addition to the gateway's timeout, to read and write files
	sweepInterval    = 10 * time.Minute
)

// convert is the handler of conversions. It can be interrupted at any point and run again: the XML is written completely and once, or not at all. An attempt that finds
// the XML completes the job without a call of the gateway (C10).
func (a *app) convert(ctx context.Context, job *engine.Job[Conversion]) error {
	switch _, err := a.results.Stat(ctx, resultKey(job.ID)); {
	case err == nil:
		return a.useExisting(ctx, job)
	case !errors.Is(err, blob.ErrNotFound):
		return storageFailure(fmt.Errorf("checking for the result: %w", err))
	}
	source, err := a.uploads.Open(ctx, job.Args.Source)
	if errors.Is(err, blob.ErrNotFound) {
		return errSourceGone
	}
	if err != nil {
		return storageFailure(fmt.Errorf("opening the PDF: %w", err))
	}
	defer source.Close()
	result, err := a.convertPDF(ctx, job, source)
	if errors.Is(err, blob.ErrExists) { // a worker that had lost its lease finished first
		return a.useExisting(ctx, job)
	}
	if err != nil {
		return err
	}
	return a.recordResult(ctx, job, result)
}

// convertPDF sends the PDF to the gateway and streams the XML into the results.
func (a *app) convertPDF(ctx context.Context, job *engine.Job[Conversion], source *blob.File) (Result, error) {
	callCtx, cancel := context.WithTimeout(ctx, a.set.GatewayTimeout)
	defer cancel()
	response, err := a.callGateway(callCtx, job, source)
	if err != nil {
		return Result{}, err
	}
	defer response.Body.Close()
	xml := newXMLReader(response.Body)
	defer xml.Close()
	info, err := a.results.Put(ctx, resultKey(job.ID), xml)
	switch {
	case xml.err != nil:
		return Result{}, xml.err
	case errors.Is(err, blob.ErrExists):
		return Result{}, err
	case err != nil:
		return Result{}, storageFailure(fmt.Errorf("writing the result: %w", err))
	}
	return Result{Key: info.Key, Bytes: info.Size, SHA256: xml.sha256()}, nil
}

// useExisting completes a job with a result that exists already: an earlier attempt wrote it and could not settle the job.
func (a *app) useExisting(ctx context.Context, job *engine.Job[Conversion]) error {
	file, err := a.results.Open(ctx, resultKey(job.ID))
	if err != nil {
		return storageFailure(fmt.Errorf("opening the result: %w", err))
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return storageFailure(fmt.Errorf("reading the result: %w", err))
	}
	return a.recordResult(ctx, job, Result{Key: file.Key, Bytes: file.Size, SHA256: hex.EncodeToString(sum.Sum(nil)), Found: true})
}

// recordResult records the XML, which starts its retention period, and sets the result of the job.
func (a *app) recordResult(ctx context.Context, job *engine.Job[Conversion], result Result) error {
	if err := a.keepResult(ctx, job.ID, result.Key, result.Bytes); err != nil {
		return storageFailure(fmt.Errorf("recording the result: %w", err))
	}
	job.Result(result)
	return nil
}

// refuse is the handler of refusals: it fails with the code of the upload. If the user is to blame, as for a file that is no PDF, the failure is benign and raises no
// alert.
func (a *app) refuse(_ context.Context, job *engine.Job[Refusal]) error {
	detail := job.Args.Detail
	if detail == "" {
		detail = "the file was refused"
	}
	code := a.set.code(job.Args.Code)
	err := failure.NeverRetry(failure.WithCode(errors.New(detail), code.Name))
	if code.Blame == failure.BlameUser {
		err = failure.Benign(err)
	}
	return err
}

// engineConfig returns the configuration of the engine. Every process performs the duties, whatever queues it claims from.
func (a *app) engineConfig(queues []string) engine.Config {
	taxonomy, err := failure.NewTaxonomy(a.set.codes()...)
	if err != nil {
		panic(err) // the codes are constant
	}
	return engine.Config{
		Queues: queues, Slots: max(1, a.set.Concurrency), Prefetch: -1, // no prefetch: a conversion that waits for a slot must not count as processing
		Lease: a.set.Lease, Grace: a.set.Grace, Taxonomy: taxonomy, Log: a.log,
		Dependencies: map[string]engine.Dependency{dependencyGateway: {
			Breaker: a.set.breaker(), NoBudget: true, // retries must run at the promised time (001 section 6)
			Probe: a.probeGateway, ProbeEvery: a.set.ProbeEvery,
		}},
		Retention: a.retention(), RetentionWarning: -1, // users see on the page when their files are deleted
		DeleteArtifact: a.expire,
		Duties: []engine.Duty{
			{Name: "sweep", Interval: sweepInterval, Run: a.sweep},
			{Name: "gateway", Interval: a.set.ProbeEvery, Run: a.watchGateway},
		},
	}
}

func (a *app) conversionKind() engine.KindOptions {
	return engine.KindOptions{Timeout: a.set.GatewayTimeout + storageAllowance, Policy: a.set.policy(), Classify: classify, Dependency: dependencyGateway}
}

func (a *app) refusalKind() engine.KindOptions { return engine.KindOptions{} }

// retention returns how long records of jobs are kept (C12). Their files expire earlier.
func (a *app) retention() []store.RetentionRule {
	keep := store.RetentionRule{Name: "record", For: a.set.KeepRecord}
	if keep.For == 0 {
		keep.For = store.Forever
	}
	return []store.RetentionRule{keep}
}

// operatorConfig returns the configuration for operators. A manual retry is refused if the PDF no longer exists (C5).
func (a *app) operatorConfig() ops.Config {
	taxonomy, err := failure.NewTaxonomy(a.set.codes()...)
	if err != nil {
		panic(err) // the codes are constant
	}
	return ops.Config{
		Taxonomy: taxonomy, Retention: a.retention(),
		Breakers: map[string]breaker.Config{dependencyGateway: a.set.breaker()},
		Sources: map[string]func(context.Context, holdfast.Job) error{
			(Conversion{}).Kind(): func(ctx context.Context, job holdfast.Job) error {
				kept, err := a.checkFiles(ctx, job)
				if err == nil && kept.Source.State != fileAvailable {
					err = errSourceGone
				}
				return err
			},
			(Refusal{}).Kind(): func(context.Context, holdfast.Job) error { return errSourceGone },
		},
	}
}
