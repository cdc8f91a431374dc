package work

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/handler"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/fetchbox/upload"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

const (
	noProxyWait = 15 * time.Second // how long a resource waits when no proxy of its pool is usable
	allowance   = 10 * time.Minute // what an attempt may take in addition to its download, for handler and upload
)

// A Store is the part of a store that a Worker uses besides the engine.
type Store interface {
	Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error)
	SealGroup(ctx context.Context, id holdfast.ID) error
}

// A Config is what a Worker works with, and its limits.
type Config struct {
	Store    Store
	Spool    *spool.Spool
	Fetcher  *fetch.Fetcher
	Handlers handler.Set
	Bucket   blob.Store
	Limits   Limits
	Log      *slog.Logger

	Downloaded func(size int64) // called after each complete download
}

// A Worker has the handlers of the jobs. It is safe for concurrent use.
type Worker struct {
	cfg      Config
	uploader *upload.Uploader
}

// New makes a Worker. It does nothing before its handlers are registered.
func New(cfg Config) *Worker {
	return &Worker{cfg: cfg, uploader: upload.New(cfg.Bucket)}
}

// Register registers the handlers of both kinds of jobs.
func (w *Worker) Register(e *engine.Engine) {
	engine.Handle(e, w.fetch, engine.KindOptions{
		Timeout: w.cfg.Limits.Download + allowance, Policy: w.cfg.Limits.policy(), Classify: code.Classify, Dependency: upload.Dependency,
	})
	engine.Handle(e, w.seal, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 1000, Backoff: failure.Exponential{Base: time.Second, Factor: 2, Cap: time.Minute}}})
}

// A checkpoint is where a task is on its way.
type checkpoint struct {
	Downloaded bool   `json:"downloaded"` // the spool has the resource
	Failures   int    `json:"failures"`   // failures of the task before this stage
	Proxy      string `json:"proxy,omitempty"`
}

// fetch is the handler of tasks: it downloads a resource, shows it to its handler and stores it. It can be interrupted at any point and run again. A resource that was
// downloaded and verified is not downloaded again: its spool file is kept until the task has ended.
func (w *Worker) fetch(ctx context.Context, job *engine.Job[Task]) error {
	var at checkpoint
	if _, err := job.Resume(&at); err != nil {
		at = checkpoint{} // of another version: begin again
	}
	result, err := w.download(ctx, job, &at)
	if err == nil {
		err = w.store(ctx, job, result)
	}
	if err != nil {
		return w.attemptLimit(job, at, err)
	}
	return nil
}

// download returns the resource: that of an earlier attempt, or else a new download.
func (w *Worker) download(ctx context.Context, job *engine.Job[Task], at *checkpoint) (fetch.Result, error) {
	name := job.ID.String()
	if at.Downloaded {
		result, err := w.cfg.Fetcher.Adopt(name)
		if code.OfError(err) != code.StorageSpoolLost {
			return result, failure.Blameless(err)
		}
		*at = checkpoint{Failures: job.Failures} // the file is gone, as after a move to another machine
	}
	request := RequestOf(&job.Args.Resource)
	request.Name, request.Attempt, request.Owner = name, job.Attempt(), job.Owner
	if job.LastFailure != nil {
		request.AvoidProxy = job.LastFailure.Context["proxy"]
	}
	if request.ETag != "" {
		switch _, err := w.cfg.Bucket.Stat(ctx, ObjectKey(job.Owner, job.Group, &job.Args.Resource, job.Args.Index)); {
		case errors.Is(err, blob.ErrNotFound):
			request.ETag = "" // the object that it stands for is gone: the resource is downloaded, whether it has changed or not
		case err != nil:
			return fetch.Result{}, upload.Classify(ctx, err)
		}
	}
	result, err := w.cfg.Fetcher.Fetch(ctx, request)
	if code.OfError(err) == code.DownloadProxyExhausted && !w.cfg.Limits.CountNoProxy {
		err = failure.Throttled(err, noProxyWait) // it waits, and spends no attempt
	}
	if err != nil {
		return result, failure.Blameless(err) // the storage is not to blame, and proxies have breakers of their own
	}
	if result.NotChanged {
		return result, nil
	}
	w.cfg.Downloaded(result.File.Size)
	*at = checkpoint{Downloaded: true, Failures: job.Failures, Proxy: result.Proxy}
	return result, job.Checkpoint(ctx, *at)
}

// store shows the resource to its handler and puts it into the bucket.
func (w *Worker) store(ctx context.Context, job *engine.Job[Task], result fetch.Result) error {
	r := &job.Args.Resource
	key := ObjectKey(job.Owner, job.Group, r, job.Args.Index)
	if result.NotChanged {
		job.Result(Stored{Key: key, URL: result.URL, Status: result.Status, Proxy: result.Proxy, ETag: result.ETag, NotChanged: true})
		return nil
	}
	facts := func(err error) error {
		return failure.With(failure.With(err, "proxy", result.Proxy), "attempt", strconv.Itoa(job.Attempt()))
	}
	found := handler.Output{}
	if r.Handler != "" {
		var err error
		if found, err = w.cfg.Handlers.Handle(ctx, r.Handler, handler.Input{File: result.File, URL: result.URL, Type: result.Type, Meta: r.Meta}); err != nil {
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
	err := w.uploader.Put(ctx, upload.Object{Key: key, File: result.File, Type: found.Type, Meta: meta, Replace: r.Replace || r.ETag != ""})
	if err != nil {
		return facts(err)
	}
	job.Result(Stored{
		Key: key, Size: result.File.Size, SHA256: result.File.SHA256, Type: found.Type, URL: result.URL, Status: result.Status, Proxy: result.Proxy, ETag: result.ETag, Meta: found.Meta,
	})
	return nil
}

// AttemptEnded deletes the spool file of a task that has ended.
func (w *Worker) AttemptEnded(end engine.AttemptEnd) {
	if end.Lease.Kind != (Task{}).Kind() || !end.To.Terminal() {
		return
	}
	if err := w.cfg.Spool.Remove(end.Lease.ID.String()); err != nil && code.OfError(err) != code.StorageSpoolLost {
		w.cfg.Log.Warn("a spool file cannot be deleted, the sweep will do it", "event", "spool_file_left", "job_id", end.Lease.ID.String(), "error", err.Error())
	}
}

// seal is the handler of acceptances: it declares that the job has all its resources.
func (w *Worker) seal(ctx context.Context, job *engine.Job[Acceptance]) error {
	err := w.cfg.Store.SealGroup(ctx, job.Args.Job)
	if errors.Is(err, holdfast.ErrConflict) { // it was cancelled before
		return nil
	}
	return err
}
