package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/handler"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/fetchbox/upload"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// noProxyWait is how long a resource waits when no proxy of its pool is usable.
const noProxyWait = 15 * time.Second

// A checkpoint is where a task is on its way.
type checkpoint struct {
	Downloaded bool   `json:"downloaded"` // the spool has the resource
	Failures   int    `json:"failures"`   // failures of the task before this stage
	Proxy      string `json:"proxy,omitempty"`
}

// fetch is the handler of tasks: it downloads a resource, shows it to its handler and stores it. It can be interrupted at any point and run again. A resource that was
// downloaded and verified is not downloaded again: its spool file is kept until the task has ended.
func (a *app) fetch(ctx context.Context, job *engine.Job[Task]) error {
	var at checkpoint
	if _, err := job.Resume(&at); err != nil {
		at = checkpoint{} // of another version: begin again
	}
	result, err := a.download(ctx, job, &at)
	if err == nil {
		err = a.store(ctx, job, result)
	}
	if err != nil {
		return a.attemptLimit(job, at, err)
	}
	return nil
}

// download returns the resource: that of an earlier attempt, or else a new download.
func (a *app) download(ctx context.Context, job *engine.Job[Task], at *checkpoint) (fetch.Result, error) {
	name := job.ID.String()
	if at.Downloaded {
		result, err := a.transfer.fetcher.Adopt(name)
		if codeOf(err) != code.StorageSpoolLost {
			return result, failure.Blameless(err)
		}
		*at = checkpoint{Failures: job.Failures} // the file is gone, as after a move to another machine
	}
	request := requestOf(&job.Args.Resource)
	request.Name, request.Attempt, request.Owner = name, job.Number(), job.Owner
	if job.LastFailure != nil {
		request.AvoidProxy = job.LastFailure.Context["proxy"]
	}
	if request.ETag != "" {
		switch _, err := a.transfer.bucket.Stat(ctx, objectKey(job.Owner, job.Group, &job.Args.Resource, job.Args.Index)); {
		case errors.Is(err, blob.ErrNotFound):
			request.ETag = "" // the object that it stands for is gone: the resource is downloaded, whether it has changed or not
		case err != nil:
			return fetch.Result{}, failure.On(upload.Classify(ctx, err), dependencyStorage)
		}
	}
	result, err := a.transfer.fetcher.Fetch(ctx, request)
	if codeOf(err) == code.DownloadProxyExhausted && !a.set.Limits.CountNoProxy {
		err = failure.Throttled(err, noProxyWait) // it waits, and spends no attempt
	}
	if err != nil {
		return result, failure.Blameless(err) // the storage is not to blame, and proxies have breakers of their own
	}
	if result.NotChanged {
		return result, nil
	}
	a.metrics.observeDownload(result.File.Size)
	*at = checkpoint{Downloaded: true, Failures: job.Failures, Proxy: result.Proxy}
	return result, job.Checkpoint(ctx, *at)
}

// requestOf returns the request for a resource.
func requestOf(r *manifest.Resource) fetch.Request {
	header := http.Header{}
	for name, value := range r.Headers {
		header.Set(name, value)
	}
	return fetch.Request{URL: r.URL, Header: header, Expect: fetch.Expect{SHA256: r.SHA256, Type: r.Type, Size: r.Size}, Pool: r.Proxy, Region: r.Region, ETag: r.ETag}
}

// store shows the resource to its handler and puts it into the bucket.
func (a *app) store(ctx context.Context, job *engine.Job[Task], result fetch.Result) error {
	r := &job.Args.Resource
	key := objectKey(job.Owner, job.Group, r, job.Args.Index)
	if result.NotChanged {
		job.Result(Stored{Key: key, URL: result.URL, Status: result.Status, Proxy: result.Proxy, ETag: result.ETag, NotChanged: true})
		return nil
	}
	facts := func(err error) error {
		return failure.With(failure.With(err, "proxy", result.Proxy), "attempt", strconv.Itoa(job.Number()))
	}
	found := handler.Output{}
	if r.Handler != "" {
		var err error
		if found, err = a.transfer.handlers.Handle(ctx, r.Handler, handler.Input{File: result.File, URL: result.URL, Type: result.Type, Meta: r.Meta}); err != nil {
			return failure.Blameless(facts(err))
		}
	}
	if found.Type == "" {
		found.Type = result.Type
	}
	meta := map[string]string{}
	for _, part := range []map[string]string{r.Meta, found.Meta} {
		for name, value := range part {
			meta[name] = value
		}
	}
	err := a.transfer.uploader.Put(ctx, upload.Object{Key: key, File: result.File, Type: found.Type, Meta: meta, Replace: r.Replace || r.ETag != ""})
	if err != nil {
		return failure.On(facts(err), dependencyStorage)
	}
	job.Result(Stored{
		Key: key, Size: result.File.Size, SHA256: result.File.SHA256, Type: found.Type, URL: result.URL, Status: result.Status, Proxy: result.Proxy, ETag: result.ETag, Meta: found.Meta,
	})
	return nil
}

// attemptLimit ends the task when the attempts of its stage are used up. Downloads and uploads have limits of their own: a resource that needed all its downloads but
// one has still all attempts to be stored.
func (a *app) attemptLimit(job *engine.Job[Task], at checkpoint, err error) error {
	rules := failure.Rules{Taxonomy: code.Taxonomy(), Classify: code.Classify, Policy: a.policy()}
	v := failure.Decide(rules, job.Lease, failure.Outcome{Event: failure.Returned, Err: err})
	if v.Charge != store.ChargeFailure || v.To != holdfast.Queued {
		return err // it spends no attempt, or ends the task anyway
	}
	limit, name := job.Args.Downloads, "download_retry_limit"
	if at.Downloaded && !strings.HasPrefix(v.Failure.Code, "DOWNLOAD_") {
		limit, name = job.Args.Storage, "storage_retry_limit"
	}
	if job.Failures-at.Failures+1 < limit {
		return err
	}
	return failure.NeverRetry(failure.With(err, name, strconv.Itoa(limit)))
}

// codeOf returns the code of an error of the transfer packages; empty for nil.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	v := failure.Decide(failure.Rules{Taxonomy: code.Taxonomy(), Classify: code.Classify}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
	if v.Failure == nil {
		return ""
	}
	return v.Failure.Code
}

// attemptEnded counts an attempt, and deletes the spool file of a task that has ended.
func (a *app) attemptEnded(end engine.AttemptEnd) {
	a.metrics.ObserveAttempt(end)
	if end.Lease.Kind != (Task{}).Kind() || !end.To.Terminal() {
		return
	}
	if err := a.transfer.spool.Remove(end.Lease.ID.String()); err != nil && codeOf(err) != code.StorageSpoolLost {
		a.log.Warn("a spool file cannot be deleted, the sweep will do it", "event", "spool_file_left", "job_id", end.Lease.ID.String(), "error", err.Error())
	}
}

// seal is the handler of acceptances: it declares that the job has all its resources.
func (a *app) seal(ctx context.Context, job *engine.Job[Acceptance]) error {
	err := a.jobs.SealGroup(ctx, job.Args.Job)
	if errors.Is(err, holdfast.ErrConflict) { // it was cancelled before
		return nil
	}
	return err
}

// spoolUsage says how full the spool is.
func (a *app) spoolUsage() spool.Usage { return a.transfer.spool.Usage() }
