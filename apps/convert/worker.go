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
)

const (
	storagePatience = 2 * time.Minute  // what an attempt is given beside the gateway's time, for files
	sweepEvery      = 10 * time.Minute // how often what crashes left is looked for
)

// convert makes XML of one PDF. It may be cut off anywhere and run again: the XML comes to be whole, once, or not at all; and an attempt that finds it there
// is done (C10).
func (a *app) convert(ctx context.Context, job *engine.Job[Conversion]) error {
	switch _, err := a.results.Stat(ctx, resultKey(job.ID)); {
	case err == nil:
		return a.found(ctx, job)
	case !errors.Is(err, blob.ErrNotFound):
		return stored(fmt.Errorf("looking for the result: %w", err))
	}
	source, err := a.uploads.Open(ctx, job.Args.Source)
	if errors.Is(err, blob.ErrNotFound) {
		return errSourceGone
	}
	if err != nil {
		return stored(fmt.Errorf("opening the PDF: %w", err))
	}
	defer source.Close()
	result, err := a.make(ctx, job, source)
	if errors.Is(err, blob.ErrExists) { // somebody who lost the job went on with it, and was faster
		return a.found(ctx, job)
	}
	if err != nil {
		return err
	}
	return a.keep(ctx, job, result)
}

// make has the gateway convert the PDF, straight into the results.
func (a *app) make(ctx context.Context, job *engine.Job[Conversion], source *blob.File) (Result, error) {
	within, cancel := context.WithTimeout(ctx, a.set.GatewayTimeout)
	defer cancel()
	response, err := a.ask(within, job, source)
	if err != nil {
		return Result{}, err
	}
	defer response.Body.Close()
	answer := newXMLReader(response.Body)
	defer answer.Close()
	info, err := a.results.Put(ctx, resultKey(job.ID), answer)
	switch {
	case answer.err != nil:
		return Result{}, answer.err
	case errors.Is(err, blob.ErrExists):
		return Result{}, err
	case err != nil:
		return Result{}, stored(fmt.Errorf("writing the result: %w", err))
	}
	return Result{Key: info.Key, Bytes: info.Size, SHA256: answer.sha256()}, nil
}

// found takes a result that is there already for what it is: an earlier attempt had finished, and could not say so.
func (a *app) found(ctx context.Context, job *engine.Job[Conversion]) error {
	file, err := a.results.Open(ctx, resultKey(job.ID))
	if err != nil {
		return stored(fmt.Errorf("opening the result: %w", err))
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return stored(fmt.Errorf("reading the result: %w", err))
	}
	return a.keep(ctx, job, Result{Key: file.Key, Bytes: file.Size, SHA256: hex.EncodeToString(sum.Sum(nil)), Found: true})
}

// keep says what was made, and lets its time begin.
func (a *app) keep(ctx context.Context, job *engine.Job[Conversion], result Result) error {
	if err := a.keepResult(ctx, job.ID, result.Key, result.Bytes); err != nil {
		return stored(fmt.Errorf("keeping the result: %w", err))
	}
	job.Result(result)
	return nil
}

// refuse writes down that a file was not taken. Nobody has to be woken for a file that is no PDF.
func (a *app) refuse(_ context.Context, job *engine.Job[Refusal]) error {
	detail := job.Args.Detail
	if detail == "" {
		detail = "the file was not taken"
	}
	code := a.set.code(job.Args.Code)
	err := failure.NeverRetry(failure.WithCode(errors.New(detail), code.Name))
	if code.Blame == failure.User {
		err = failure.Benign(err)
	}
	return err
}

// engineConfig is how the engine of this process works. All processes perform the duties, whatever they work on.
func (a *app) engineConfig(queues []string) engine.Config {
	taxonomy, err := failure.NewTaxonomy(a.set.codes()...)
	if err != nil {
		panic(err) // the table of codes is part of the program
	}
	return engine.Config{
		Queues: queues, Slots: max(1, a.set.Concurrency), Prefetch: -1, // a conversion that waits for a slot is not being processed
		Lease: a.set.Lease, Grace: a.set.Grace, Taxonomy: taxonomy, Log: a.log,
		Dependencies: map[string]engine.Dependency{dependencyGateway: {
			Breaker: a.set.breaker(), NoBudget: true, // retries come when they were promised to (001 section 6)
			Probe: a.gatewayBack, ProbeEvery: a.set.ProbeEvery,
		}},
		Retention: a.retention(), RetentionWarning: -1, // what is deleted is what people were told would be
		Expire: a.expire,
		Duties: []engine.Duty{
			{Name: "sweep", Beat: sweepEvery, Round: a.sweep},
			{Name: "gateway", Beat: a.set.ProbeEvery, Round: a.watchGateway},
		},
	}
}

func (a *app) conversionKind() engine.Kind {
	return engine.Kind{Timeout: a.set.GatewayTimeout + storagePatience, Policy: a.set.policy(), Classify: classify, Dependency: dependencyGateway}
}

func (a *app) refusalKind() engine.Kind { return engine.Kind{} }

// retention is how long it is known what became of jobs (C12). Their files go before them.
func (a *app) retention() []holdfast.Retain {
	keep := holdfast.Retain{Name: "record", For: a.set.KeepRecord}
	if keep.For == 0 {
		keep.For = holdfast.Forever
	}
	return []holdfast.Retain{keep}
}

// deskConfig is what those who intervene have to know: a manual retry needs the PDF (C5).
func (a *app) deskConfig() ops.Config {
	taxonomy, err := failure.NewTaxonomy(a.set.codes()...)
	if err != nil {
		panic(err) // as above
	}
	return ops.Config{
		Taxonomy: taxonomy, Retention: a.retention(),
		Breakers: map[string]breaker.Config{dependencyGateway: a.set.breaker()},
		Sources: map[string]func(context.Context, holdfast.Job) error{
			(Conversion{}).Kind(): func(ctx context.Context, job holdfast.Job) error {
				kept, err := a.standing(ctx, job)
				if err == nil && kept.Source.State != fileAvailable {
					err = errSourceGone
				}
				return err
			},
			(Refusal{}).Kind(): func(context.Context, holdfast.Job) error { return errSourceGone },
		},
	}
}
