package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

// noBrowserWait is how long a shot waits when no browser can be started. It spends no attempt.
const noBrowserWait = 15 * time.Second

// storeTime is how long storing a picture and completing its job may take in addition to the time limit of the shot.
const storeTime = 2 * time.Minute

// Register registers the handlers of shots and webhooks.
func (s *Service) Register(e *engine.Engine) {
	options := func(t JobType) engine.KindOptions {
		return engine.KindOptions{
			Timeout: s.cfg.Limits.Timeout + storeTime, Policy: s.cfg.Retries.of(t).forEngine(s.cfg.Crashes, s.cfg.Learned), Classify: code.Classify, Dependency: code.Browsers,
		}
	}
	engine.Handle(e, func(ctx context.Context, job *engine.Job[Screenshot]) error {
		return s.make(ctx, &work{&job.Lease.Job, &job.Args.Request, job.Result, job.CompleteIn})
	}, options(TypeScreenshot))
	engine.Handle(e, func(ctx context.Context, job *engine.Job[PDF]) error {
		return s.make(ctx, &work{&job.Lease.Job, &job.Args.Request, job.Result, job.CompleteIn})
	}, options(TypePDF))
	s.registerHooks(e)
}

// A work is a shot that a worker makes.
type work struct {
	job      *holdfast.Job
	request  *Request
	result   func(value any)
	complete func(ctx context.Context, tx any) error
}

// make takes the picture, stores it, and completes the job and its payment in one transaction. It can be interrupted at any point and run again.
func (s *Service) make(ctx context.Context, w *work) error {
	picture, err := s.cfg.Camera.Take(ctx, w.request.Options)
	if err != nil {
		switch coded := (*code.Error)(nil); {
		case code.Name(err) == code.BrowserUnavailable || code.Name(err) == code.BrowserBusy:
			err = failure.Throttled(err, noBrowserWait)
		case errors.As(err, &coded) && coded.Dependency == "":
			err = failure.Blameless(err) // a document of the request has no host, and the browsers are not to blame
		}
		return err
	}
	stored := Stored{Key: keyOf(w.job, picture.Format), Format: picture.Format, Facts: picture.Facts}
	if _, err := s.cfg.Bucket.Put(ctx, stored.Key, bytes.NewReader(picture.Data)); err != nil && !errors.Is(err, blob.ErrExists) {
		return code.New(code.PictureStore, "", err)
	}
	if err := s.complete(ctx, w, stored); err != nil {
		// The picture stays: whether the commit took place may not be known yet. The sweep deletes pictures of no job.
		if errors.Is(err, holdfast.ErrLeaseLost) || ctx.Err() != nil {
			return err
		}
		return code.New(code.SystemStorage, "", err)
	}
	return nil
}

// complete completes the job and captures its credits: both or neither.
func (s *Service) complete(ctx context.Context, w *work, stored Stored) error {
	w.result(stored)
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		if err := s.ledger.Capture(ctx, tx, credit.Reservation{Owner: w.job.Owner, Job: w.job.ID, Generation: w.job.Generation, Amount: w.request.Cost, Note: string(typeOf(w.request.Options))}); err != nil {
			return err
		}
		if w.request.Cache != "" {
			err := tx.Exec(ctx, `INSERT INTO screenshot_cache (owner, digest, job, made_at) VALUES (?, ?, ?, ?) ON CONFLICT (owner, digest) DO UPDATE SET job = excluded.job, made_at = excluded.made_at`,
				w.job.Owner, w.request.Cache, w.job.ID.String(), time.Now().UnixMicro())
			if err != nil {
				return err
			}
		}
		return w.complete(ctx, tx.Tx)
	})
}

// keyOf returns the key of the picture of an attempt. Each attempt has its own, so that a worker that lost its job overwrites nothing.
func keyOf(job *holdfast.Job, format shot.Format) string {
	return fmt.Sprintf("pictures/%s/%s/%d.%s", job.Owner, job.ID, job.Token, format)
}
