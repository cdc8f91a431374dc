package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/store"
)

// The sweep is a duty. It cleans up files that a crash left between the steps of an upload or a conversion.
const (
	sweepAge       = time.Hour // younger files may belong to an upload or conversion in progress
	sweepLimit     = 1000      // files checked in one round, in the uploads and the results each
	namespaceSweep = "sweep"
	nameSweep      = "files"
)

// A sweepState is the progress of the sweep, shared by all processes.
type sweepState struct {
	// Since is when this store was first swept. An older file whose job the store does not know is not deleted: it may belong to another store, because
	// DATABASE_URL may be wrong.
	Since   time.Time `json:"since"`
	Uploads string    `json:"uploads,omitempty"` // the keys after which the next round continues
	Results string    `json:"results,omitempty"`
}

// sweep is one round. It deletes unfinished files, files whose job does not exist, and expired files that still exist and whose job has ended. It records a file that has
// no retention period yet. A file that its job needs is never deleted. A round continues where the last one ended, and starts over after the last file. Several
// processes may sweep at once: every step is idempotent.
func (a *app) sweep(ctx context.Context) error {
	b, record, err := a.readSweepState(ctx)
	if err != nil {
		return err
	}
	var uploadsErr, resultsErr error
	b.Uploads, uploadsErr = a.sweepStorage(ctx, a.uploads, b, artifactSource)
	b.Results, resultsErr = a.sweepStorage(ctx, a.results, b, artifactResult)
	record.Body, err = json.Marshal(b)
	if err == nil {
		err = a.jobs.Apply(ctx, store.Change{Records: []store.Record{record}})
	}
	if errors.Is(err, holdfast.ErrConflict) { // another process swept in the meantime: the next round continues from its position
		err = nil
	}
	return errors.Join(uploadsErr, resultsErr, err)
}

func (a *app) readSweepState(ctx context.Context) (b sweepState, record store.Record, err error) {
	record = store.Record{Namespace: namespaceSweep, Name: nameSweep}
	records, err := a.jobs.Records(ctx, namespaceSweep)
	for _, r := range records {
		if r.Name == nameSweep {
			record = r
			_ = json.Unmarshal(r.Body, &b) // an unreadable state starts from the beginning
		}
	}
	if b.Since.IsZero() {
		b.Since = time.Now().Add(-sweepAge)
	}
	return b, record, err
}

// sweepStorage sweeps the next files of a storage and returns the key after which the next round continues. An error with one file does not stop the others.
func (a *app) sweepStorage(ctx context.Context, in blob.Store, b sweepState, name string) (after string, err error) {
	after = b.Uploads
	if name == artifactResult {
		after = b.Results
	}
	var problems []error
	checked := 0
	for info, err := range in.Older(ctx, sweepAge, after) {
		if err == nil {
			err = a.sweepFile(ctx, in, b, name, info)
		}
		if err != nil {
			problems = append(problems, err)
		}
		if ctx.Err() != nil || len(problems) >= 10 { // so many errors are caused by the storage or the store, not by single files
			return after, errors.Join(problems...)
		}
		if checked++; checked >= sweepLimit {
			return info.Key, errors.Join(problems...)
		}
	}
	return "", errors.Join(problems...)
}

func (a *app) sweepFile(ctx context.Context, in blob.Store, b sweepState, name string, info blob.Info) error {
	if info.Part {
		return a.deleteFile(ctx, in, info, "was never finished")
	}
	id, ours := jobOf(info.Key, name)
	if !ours {
		return nil
	}
	kept, err := a.jobs.Artifacts(ctx, store.ArtifactFilter{Job: id})
	if err != nil {
		return err
	}
	i := indexOf(kept, name)
	if i >= 0 && kept[i].ExpiredAt.IsZero() {
		return nil // the usual case
	}
	job, err := a.jobs.Job(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrPurged), errors.Is(err, holdfast.ErrNotFound) && info.MadeAt.After(b.Since):
		return a.deleteFile(ctx, in, info, "belongs to no job")
	case errors.Is(err, holdfast.ErrNotFound):
		return nil
	case err != nil:
		return err
	case i >= 0 && job.State.Terminal() && !info.MadeAt.After(kept[i].ExpiredAt):
		return a.deleteFile(ctx, in, info, "has expired")
	case !job.State.Terminal() && (i >= 0 || name == artifactResult):
		return nil // the worker of the job records it
	case name == artifactSource:
		return a.keepSource(ctx, id, info.Key, info.Size)
	}
	return a.keepResult(ctx, id, info.Key, info.Size)
}

func (a *app) deleteFile(ctx context.Context, in blob.Store, info blob.Info, why string) error {
	if err := in.Delete(ctx, info.Key); err != nil {
		return err
	}
	a.log.Info("file deleted by the sweep", "reason", why, "event", "swept", "file", info.Key, "bytes", info.Size)
	return nil
}

// jobOf returns the job of a file, by its name.
func jobOf(key, name string) (id holdfast.ID, ours bool) {
	stem, _, _ := strings.Cut(key, ".")
	id, err := holdfast.ParseID(stem)
	if name == artifactSource {
		return id, err == nil && key == sourceKey(id)
	}
	return id, err == nil && key == resultKey(id)
}
