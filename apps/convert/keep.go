package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
)

// keepSource has the PDF of a job expire in its time, which begins now. keepResult does so for its XML (C12).
func (a *app) keepSource(ctx context.Context, id holdfast.ID, key string, size int64) error {
	return a.keepFile(ctx, holdfast.Artifact{Job: id, Name: artifactSource, Ref: key, Size: size, ExpireIn: a.set.KeepSource})
}

func (a *app) keepResult(ctx context.Context, id holdfast.ID, key string, size int64) error {
	return a.keepFile(ctx, holdfast.Artifact{Job: id, Name: artifactResult, Ref: key, Size: size, ExpireIn: a.set.KeepResult})
}

func (a *app) keepFile(ctx context.Context, file holdfast.Artifact) error {
	return a.jobs.Keep(ctx, holdfast.Change{Artifacts: []holdfast.Artifact{file}})
}

// expire deletes a file whose time is up. The PDF of a job that has not ended stays until it has, and then the sweep deletes it: a gateway that is away for longer
// than PDFs are kept costs nobody a conversion.
func (a *app) expire(ctx context.Context, file holdfast.Artifact) error {
	switch file.Name {
	case artifactSource:
		if live, err := a.live(ctx, file.Job); live || err != nil {
			return err
		}
		return a.uploads.Delete(ctx, sourceKey(file.Job))
	case artifactResult:
		return a.results.Delete(ctx, resultKey(file.Job))
	}
	return fmt.Errorf("%q is no file of a conversion: whoever kept it must delete it", file.Name)
}

// live reports whether a job exists and has not ended.
func (a *app) live(ctx context.Context, id holdfast.ID) (bool, error) {
	job, err := a.jobs.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		return false, nil
	}
	return err == nil && !job.State.Terminal(), err
}

// files is what became of the files of a job.
type files struct{ Source, Result file }

// A file is one of them.
type file struct {
	State    string    // fileAvailable, ...
	Size     int64     // 0 when nobody knows
	ExpireAt time.Time // when its time is up, or was; zero: never
}

// standing tells what became of a job's files, for certain: storage is asked whether they are there.
func (a *app) standing(ctx context.Context, job holdfast.Job) (files, error) {
	return a.keptFiles(ctx, job, true)
}

// keptFiles tells what became of a job's files. Unless it has to be certain, what should be there is taken to be there.
func (a *app) keptFiles(ctx context.Context, job holdfast.Job, certain bool) (files, error) {
	f := files{Source: file{State: fileNone}, Result: file{State: fileNone}}
	if job.Kind != (Conversion{}).Kind() {
		return f, nil
	}
	kept, err := a.jobs.Artifacts(ctx, holdfast.ArtifactFilter{Job: job.ID})
	if err != nil {
		return f, err
	}
	f.Source = recorded(kept, artifactSource, job.AsOf)
	if f.Source.State == fileExpired && !job.State.Terminal() {
		f.Source.State = fileAvailable // see expire
	}
	if job.State == holdfast.Complete {
		f.Result = recorded(kept, artifactResult, job.AsOf)
	}
	if !certain {
		return f, nil
	}
	return f, errors.Join(f.Source.confirm(ctx, a.uploads, sourceKey(job.ID)), f.Result.confirm(ctx, a.results, resultKey(job.ID)))
}

// recorded is what the store says of a file that was made. One whose time is up has expired, though it may take some seconds until it is deleted. One that the
// store says nothing of will be kept by the sweep.
func recorded(kept []holdfast.Artifact, name string, now time.Time) file {
	f := file{State: fileAvailable}
	if i := indexOf(kept, name); i >= 0 {
		f.Size, f.ExpireAt = kept[i].Size, kept[i].ExpireAt
		if due := f.ExpireAt; !kept[i].ExpiredAt.IsZero() || !due.IsZero() && !due.After(now) {
			f.State = fileExpired
		}
	}
	return f
}

func indexOf(kept []holdfast.Artifact, name string) int {
	for i := range kept {
		if kept[i].Name == name {
			return i
		}
	}
	return -1
}

// confirm looks whether a file is there that should be. One whose time was up this moment is deleted before that is written down.
func (f *file) confirm(ctx context.Context, among blob.Store, key string) error {
	if f.State != fileAvailable {
		return nil
	}
	info, err := among.Stat(ctx, key)
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
