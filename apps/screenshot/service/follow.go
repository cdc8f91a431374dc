package service

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

const (
	followPage = 200
	staleAfter = 2 * time.Minute // longer than retryTime
	sweepEvery = 10 * time.Minute
	sweepAge   = time.Hour
)

// Duties returns what an engine does for this service beside the work.
func (s *Service) Duties() []engine.Duty {
	return []engine.Duty{
		{Name: "credits", Interval: s.cfg.Tick, Run: s.follow, Signal: s.nudge},
		{Name: "reservations", Interval: time.Minute, Run: s.reconcile},
		{Name: "stuck-jobs", Interval: stuckEvery, Run: s.retryStuck},
		{Name: "alerts", Interval: alertEvery, Run: s.watch},
		{Name: "sweep", Interval: sweepEvery, Run: s.sweep},
	}
}

// follow is a duty: it releases the credits of shots that ended without a picture, and enqueues webhooks and events of the stream. The number of the last event that it handled moves in the
// transaction in which it handles the events, so each event has its effect once, in however many processes the duty runs.
func (s *Service) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := s.followPage(ctx)
		if err != nil || !more {
			return err
		}
	}
	return ctx.Err()
}

func (s *Service) followPage(ctx context.Context) (more bool, err error) {
	after, err := s.followed(ctx)
	if err != nil {
		return false, err
	}
	feed, err := s.jobs.Feed(ctx, after, followPage)
	if err != nil || feed.Next == after {
		return false, err
	}
	hooks, err := s.hooksOf(ctx, feed.Events)
	if err != nil {
		return false, err
	}
	calls, err := s.callsOf(ctx, feed.Events)
	if err != nil {
		return false, err
	}
	hooks = append(hooks, calls...)
	late, err := s.lateOf(ctx, feed.Events)
	if err != nil {
		return false, err
	}
	released := 0
	err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		released = 0
		moved, err := tx.Changed(ctx, `UPDATE screenshot_setting SET value = ? WHERE name = 'followed' AND value = ?`, strconv.FormatInt(feed.Next, 10), strconv.FormatInt(after, 10))
		if err != nil || moved == 0 { // another process was faster
			return err
		}
		for i := range feed.Events {
			e := &feed.Events[i]
			if e.Queue != Queue && !isShot(e.Kind) || !endsWithout(e.Name) {
				continue
			}
			n, err := s.ledger.Release(ctx, tx, e.Job, e.Generation, reasonOf(e))
			if err != nil {
				return err
			}
			released += int(n)
		}
		for i := range late {
			if err := s.keepPromise(ctx, tx, &late[i].event, &late[i].job); err != nil {
				return err
			}
		}
		if len(hooks) == 0 {
			return nil
		}
		_, err = s.jobs.In(tx.Tx).Enqueue(ctx, hooks)
		return err
	})
	s.counts.released.Add(int64(released))
	if err == nil && feed.Missed > 0 {
		s.log.Warn("events were deleted before their credits were released, the duty reservations does it", "event", "events_missed", "events", feed.Missed)
	}
	return err == nil, err
}

// followed returns the number of the last event that was handled.
func (s *Service) followed(ctx context.Context) (int64, error) {
	text := ""
	err := s.cfg.DB.One(ctx, `SELECT value FROM screenshot_setting WHERE name = 'followed'`, nil, &text)
	if errors.Is(err, database.ErrNoRow) {
		err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
			return tx.Exec(ctx, `INSERT INTO screenshot_setting (name, value) VALUES ('followed', '0') ON CONFLICT (name) DO NOTHING`)
		})
		text = "0"
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

func isShot(kind string) bool { return kind == (Screenshot{}).Kind() || kind == (PDF{}).Kind() }

// endsWithout reports whether an event is the end of a shot without a picture.
func endsWithout(name string) bool {
	return name == store.EventFailed || name == store.EventBenign || name == store.EventCancelled
}

func reasonOf(e *store.Event) string {
	if e.Name == store.EventCancelled {
		return "cancelled"
	}
	if e.Code == "" {
		return "failed"
	}
	return "failed: " + code.Of(e.Code).Name
}

// reconcile is a duty: it releases reservations whose shot has ended, or whose retry was never made because the process died in between.
func (s *Service) reconcile(ctx context.Context) error {
	after := ""
	for {
		list, err := s.ledger.Stale(ctx, staleAfter, after, followPage)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, r := range list {
			if err := s.reconcileOne(ctx, r); err != nil {
				return err
			}
			after = r.Job.String()
		}
	}
}

func (s *Service) reconcileOne(ctx context.Context, r credit.Stale) error {
	job, err := s.jobs.Job(ctx, r.Job)
	gone := errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged)
	if err != nil && !gone {
		return err
	}
	if !gone && !job.State.Terminal() {
		return nil
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		n, err := s.ledger.Release(ctx, tx, r.Job, r.Generation, "the shot had ended")
		s.counts.released.Add(n)
		return err
	})
}

// sweep is a duty: it deletes pictures that are older than they are kept, and such as belong to no job because their worker lost it.
func (s *Service) sweep(ctx context.Context) error {
	deleted := 0
	var all []error
	for info, err := range s.cfg.Bucket.Older(ctx, sweepAge, "") {
		if err != nil {
			all = append(all, err)
			break
		}
		needed, err := s.Needed(ctx, info.Key, time.Since(info.MadeAt))
		if err == nil && !needed && !info.Part {
			err = s.cfg.Bucket.Delete(ctx, info.Key)
			deleted++
		}
		all = append(all, err)
	}
	_, err := s.cfg.Bucket.Sweep(ctx, sweepAge)
	if deleted > 0 {
		s.log.Info("swept pictures", "event", "swept", "pictures", deleted)
	}
	return errors.Join(append(all, err)...)
}

// Needed reports whether a file is the picture of a job that is to be kept.
func (s *Service) Needed(ctx context.Context, key string, age time.Duration) (bool, error) {
	part := strings.Split(key, "/")
	if len(part) != 4 || part[0] != "pictures" || s.cfg.KeepFiles > 0 && age > s.cfg.KeepFiles {
		return false, nil
	}
	id, err := holdfast.ParseID(part[2])
	if err != nil {
		return false, nil
	}
	v, err := s.Job(ctx, "", id)
	refused := (*Error)(nil)
	if errors.As(err, &refused) && refused.Code == code.NotFound {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	return v.Status == Queued || v.Status == Processing || v.Stored != nil && v.Stored.Key == key, nil
}

// Check verifies the credits against the shots; see credit.Ledger.Check.
func (s *Service) Check(ctx context.Context) ([]string, error) {
	return s.ledger.Check(ctx, func(id holdfast.ID) (credit.State, error) {
		job, err := s.jobs.Job(ctx, id)
		if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
			return credit.State{}, nil
		}
		return credit.State{Exists: true, Generation: job.Generation, Ended: job.State.Terminal(), Complete: job.State == holdfast.Complete}, err
	})
}

// A lateRetry is a shot whose retry began later than promised.
type lateRetry struct {
	event store.Event
	job   holdfast.Job
}

// lateOf returns the shots whose retry began later than they ask for.
func (s *Service) lateOf(ctx context.Context, events []store.Event) (list []lateRetry, err error) {
	for _, e := range events {
		if e.Name != eventMissed {
			continue
		}
		job, err := s.jobs.Job(ctx, e.Job)
		switch {
		case errors.Is(err, holdfast.ErrNotFound), errors.Is(err, holdfast.ErrPurged):
		case err != nil:
			return nil, err
		case isShot(job.Kind):
			list = append(list, lateRetry{e, job})
		}
	}
	return list, nil
}
