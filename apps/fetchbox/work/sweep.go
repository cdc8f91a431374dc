package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
)

// SweepUploads deletes unfinished uploads that began longer ago than age. Those of other processes on the same bucket may be in progress.
func (w *Worker) SweepUploads(ctx context.Context, age time.Duration) error {
	n, err := w.uploader.Sweep(ctx, age)
	if err != nil {
		err = fmt.Errorf("unfinished uploads: %w", err)
	}
	if n > 0 {
		w.cfg.Log.Info("swept unfinished uploads", "event", "swept", "uploads", n)
	}
	return err
}

// SweepSpool deletes spool files whose resource needs them no longer.
func (w *Worker) SweepSpool(ctx context.Context) error {
	var asking error
	n, err := w.cfg.Spool.Sweep(func(name string) bool {
		id, bad := holdfast.ParseID(name)
		if bad != nil {
			return false
		}
		job, jobErr := w.cfg.Store.Job(ctx, id)
		if errors.Is(jobErr, holdfast.ErrNotFound) || errors.Is(jobErr, holdfast.ErrPurged) {
			return false
		}
		asking = errors.Join(asking, jobErr)
		return jobErr != nil || !job.State.Terminal()
	})
	if n > 0 {
		w.cfg.Log.Info("swept spool files", "event", "swept", "spool_files", n)
	}
	return errors.Join(err, asking)
}

// ProbeStorage asks the object storage whether it can be written.
func (w *Worker) ProbeStorage(ctx context.Context) error {
	return blob.Probe(ctx, w.cfg.Bucket, "probe/"+holdfast.NewID().String())
}
