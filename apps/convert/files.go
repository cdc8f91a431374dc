package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/store"
)

// keepSource records the PDF of a job in the store, which starts its retention period. keepResult does so for its XML (C12).
func (a *app) keepSource(ctx context.Context, id holdfast.ID, key string, size int64) error {
	return a.keepFile(ctx, store.Artifact{Job: id, Name: artifactSource, Ref: key, Size: size, ExpireIn: a.set.KeepSource})
}

func (a *app) keepResult(ctx context.Context, id holdfast.ID, key string, size int64) error {
	return a.keepFile(ctx, store.Artifact{Job: id, Name: artifactResult, Ref: key, Size: size, ExpireIn: a.set.KeepResult})
}

func (a *app) keepFile(ctx context.Context, file store.Artifact) error {
	return a.jobs.Apply(ctx, store.Change{Artifacts: []store.Artifact{file}})
}

// expire deletes a file whose retention period is over. The PDF of a job that has not ended is kept; the sweep deletes it after the end of the job. So a gateway outage
// that is longer than the retention period loses no conversion.
func (a *app) expire(ctx context.Context, file store.Artifact) error {
	switch file.Name {
	case artifactSource:
		if live, err := a.isLive(ctx, file.Job); live || err != nil {
			return err
		}
		return a.uploads.Delete(ctx, sourceKey(file.Job))
	case artifactResult:
		return a.results.Delete(ctx, resultKey(file.Job))
	}
	return fmt.Errorf("artifact %q does not belong to the converter: delete it in the application that recorded it", file.Name)
}

// isLive reports whether a job exists and has not ended.
func (a *app) isLive(ctx context.Context, id holdfast.ID) (bool, error) {
	job, err := a.jobs.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		return false, nil
	}
	return err == nil && !job.State.Terminal(), err
}

// A jobFiles is the state of a job's two files.
type jobFiles struct{ Source, Result fileState }

// A fileState is the state of one file.
type fileState struct {
	State    string    // fileAvailable, ...
	Size     int64     // 0 when unknown
	ExpireAt time.Time // the end of its retention period; zero: never
}

// checkFiles returns the state of a job's files and asks the storage whether they exist.
func (a *app) checkFiles(ctx context.Context, job holdfast.Job) (jobFiles, error) {
	return a.filesOf(ctx, job, true)
}

// filesOf returns the state of a job's files as the store has it. With verify, it also asks the storage whether the files exist.
func (a *app) filesOf(ctx context.Context, job holdfast.Job, verify bool) (jobFiles, error) {
	f := jobFiles{Source: fileState{State: fileNone}, Result: fileState{State: fileNone}}
	if job.Kind != (Conversion{}).Kind() {
		return f, nil
	}
	kept, err := a.jobs.Artifacts(ctx, store.ArtifactFilter{Job: job.ID})
	if err != nil {
		return f, err
	}
	f.Source = recordedState(kept, artifactSource, job.AsOf)
	if f.Source.State == fileExpired && !job.State.Terminal() {
		f.Source.State = fileAvailable // see expire
	}
	if job.State == holdfast.Complete {
		f.Result = recordedState(kept, artifactResult, job.AsOf)
	}
	if !verify {
		return f, nil
	}
	return f, errors.Join(f.Source.confirm(ctx, a.uploads, sourceKey(job.ID)), f.Result.confirm(ctx, a.results, resultKey(job.ID)))
}

// recordedState returns the state of a file as the store has it. A file past its retention period counts as expired, although it may take some seconds until it is
// deleted. A file without a record counts as available; the sweep will record it.
func recordedState(kept []store.Artifact, name string, now time.Time) fileState {
	f := fileState{State: fileAvailable}
	if i := indexOf(kept, name); i >= 0 {
		f.Size, f.ExpireAt = kept[i].Size, kept[i].ExpireAt
		if due := f.ExpireAt; !kept[i].ExpiredAt.IsZero() || !due.IsZero() && !due.After(now) {
			f.State = fileExpired
		}
	}
	return f
}

func indexOf(kept []store.Artifact, name string) int {
	for i := range kept {
		if kept[i].Name == name {
			return i
		}
	}
	return -1
}

// confirm asks the storage whether an available file exists. If it does not and its retention period is over, it has just expired: retention deletes a file before it
// records that.
func (f *fileState) confirm(ctx context.Context, in blob.Store, key string) error {
	if f.State != fileAvailable {
		return nil
	}
	info, err := in.Stat(ctx, key)
	switch {
	case err == nil:
		f.Size = info.Size
	case !errors.Is(err, blob.ErrNotFound):
		return err
	case !f.ExpireAt.IsZero() && !f.ExpireAt.After(time.Now()):
		f.State = fileExpired
	default:
		f.State = fileMissing
	}
	return nil
}
