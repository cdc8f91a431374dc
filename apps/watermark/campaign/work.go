package campaign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

// Queue is where copies wait for workers.
const Queue = "copies"

// A Copy is the job that makes the copy of one token.
type Copy struct {
	Campaign string `json:"campaign"`
	Token    string `json:"token"`

	// Of campaigns that were taken over from another program; see Adopt.
	Adopted bool   `json:"adopted,omitempty"` // its copy exists
	Failure string `json:"failure,omitempty"` // it had failed with this text
}

// Kind returns the kind of the job.
func (Copy) Kind() string { return "watermark.copy" }

// A Made is the result of a Copy.
type Made struct {
	Size     int64         `json:"size"`
	Duration time.Duration `json:"duration"`
}

// stuckAfter is when a copy that is still worked on is taken from its worker (section 9 of the specification), beyond the time limit of FFmpeg itself.
const stuckAfter = 30 * time.Minute

// Register registers the handlers of copies, searches and notices. A worker that is lost is noticed by its lease within a minute, and one that stands still by the watchdog of FFmpeg.
func (s *Service) Register(e *engine.Engine) {
	limit := s.cfg.Tools.Limits.Time
	if limit == 0 {
		limit = 6 * time.Hour
	}
	engine.Handle(e, s.copy, engine.KindOptions{Timeout: limit + stuckAfter, Policy: code.Policy(), Classify: code.Classify})
	s.registerNotices(e)
	engine.Handle(e, s.find, engine.KindOptions{Timeout: limit, Policy: code.Policy(), Classify: code.Classify})
}

// progressEvery is how often progress is stored.
const progressEvery = time.Second

// copy makes the copy of a token. It can be interrupted at any point and run again: the copy appears under its name when it is complete, and is the same each time.
func (s *Service) copy(ctx context.Context, job *engine.Job[Copy]) error {
	c, err := s.campaign(ctx, job.Args.Campaign)
	if err != nil {
		return asFailure(err)
	}
	t, err := s.Token(ctx, c, job.Args.Token)
	if err != nil {
		return asFailure(err)
	}
	asset, err := s.Asset(ctx, c.Owner, c.Asset)
	if err != nil {
		return asFailure(err)
	}
	if done, err := s.adopted(job, t); done {
		return err
	}
	order := media.Copy{Source: s.assetPath(asset), Target: s.copyPath(t.ID)}
	if c.Invisible {
		order.Invisible = &media.Invisible{Key: s.Key(c.ID), Token: t.ID}
	}
	if c.Visible {
		order.Visible = t.Name + " · " + c.PublishedAt.UTC().Format("2006-01-02 15:04 UTC")
	}
	var part atomic.Uint64
	order.Progress = func(done float64) { part.Store(uint64(done * 1000)) }
	stop := s.report(ctx, job, &part)
	made, err := s.cfg.Tools.Make(ctx, order)
	stop()
	if err != nil {
		return failure.With(err, "recipient", t.Name)
	}
	info, err := os.Stat(order.Target)
	if err != nil {
		return code.New(code.DiskError, err)
	}
	job.Result(Made{Size: info.Size(), Duration: made.Duration})
	return nil
}

// adopted ends the job of a copy that another program has made, or had failed to make. A manual retry makes it.
func (s *Service) adopted(job *engine.Job[Copy], t Token) (done bool, err error) {
	if job.Generation > 1 {
		return false, nil
	}
	if job.Args.Failure != "" {
		return true, failure.NeverRetry(errors.New(job.Args.Failure))
	}
	if !job.Args.Adopted {
		return false, nil
	}
	info, err := os.Stat(s.copyPath(t.ID))
	if err != nil {
		return false, nil // it is made again
	}
	job.Result(Made{Size: info.Size()})
	return true, nil
}

// report stores the progress of a copy until stop is called.
func (s *Service) report(ctx context.Context, job *engine.Job[Copy], part *atomic.Uint64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(progressEvery)
		defer every.Stop()
		for last := uint64(0); ; {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			if now := part.Load(); now != last {
				last = now
				_ = job.Progress(ctx, float64(now)/10, "") // the next report says it
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// asFailure gives errors of the tables a code.
func asFailure(err error) error {
	switch {
	case errors.Is(err, ErrNotFound):
		return code.New(code.InputMissing, err)
	case errors.Is(err, holdfast.ErrLeaseLost):
		return err
	}
	return code.New(code.SystemStorage, err)
}

// Sweep deletes files that no token and no asset has, and what killed workers left. Call it at the start of the only process that works on the folder.
func (s *Service) Sweep(ctx context.Context) error {
	known := map[string]bool{}
	for _, query := range []string{`SELECT id FROM watermark_token`, `SELECT file FROM watermark_asset`} {
		err := s.cfg.DB.Each(ctx, query, nil, func(scan func(...any) error) error {
			id := ""
			err := scan(&id)
			known[id] = true
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, name := range []string{assetFolder, copyFolder} {
		folder := filepath.Join(s.cfg.Folder, name)
		if err := media.Sweep(folder); err != nil {
			return err
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && !known[strings.TrimSuffix(entry.Name(), ".mp4")] {
				if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
