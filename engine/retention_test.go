package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

const day = 24 * time.Hour

// purged reports whether a job was purged, and by which rule.
func (s *harness) purged(id holdfast.ID) (rule string, purged bool) {
	s.Helper()
	if _, err := s.store.Job(context.Background(), id); err == nil {
		return "", false
	} else if !errors.Is(err, holdfast.ErrPurged) {
		s.Fatal(err)
	}
	stones, _, err := s.store.Tombstones(context.Background(), store.TombstoneFilter{Job: id})
	if err != nil || len(stones) != 1 {
		s.Fatalf("tombstones %v, %v", stones, err)
	}
	return stones[0].Rule, true
}

// failingIfBad registers a handler that fails notes with the tag "bad" for good.
var failingIfBad = handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
	if slices.Contains(job.Tags, "bad") {
		return failure.NeverRetry(errFailed)
	}
	return nil
})

func bad(d *holdfast.Draft) { d.Tags = []string{"bad"} }

func TestCompleteJobsArePurgedAfterAWeekAndDeadLettersAreKept(t *testing.T) {
	inBubble(t, func(s *harness) {
		good, failed := s.enqueue(), s.enqueue(bad)
		w := s.startWorker(engine.Config{}, failingIfBad)
		s.waitForState(good, holdfast.Complete)
		s.waitForState(failed, holdfast.Failed)
		w.stop()
		time.Sleep(7*day - time.Minute)
		w = s.startWorker(engine.Config{}, failingIfBad)
		time.Sleep(30 * time.Second)
		if _, gone := s.purged(good); gone {
			t.Error("it was purged too early")
		}
		time.Sleep(3 * time.Minute)
		rule, _ := s.purged(good)
		expect(s, "rule", rule, "complete")
		w.stop()
		time.Sleep(5 * 365 * day)
		s.startWorker(engine.Config{}, failingIfBad)
		time.Sleep(3 * time.Minute)
		if rule, gone := s.purged(failed); gone {
			t.Errorf("a dead letter was purged by rule %q", rule)
		}
		expect(s, "warnings", len(s.eventNames("retention")), 0)
	})
}

func TestRetentionWarnsOnceBeforeItDeletesDeadLettersForTheFirstTime(t *testing.T) {
	inBubble(t, func(s *harness) {
		rules := []store.RetentionRule{
			{Name: "audit", Kind: "audit", For: store.Forever},
			{Name: "short", For: time.Minute},
		}
		cfg := engine.Config{Retention: rules, RetentionWarning: 5 * time.Minute}
		good, failed := s.enqueue(), s.enqueue(bad)
		audit := s.enqueue(bad, func(d *holdfast.Draft) { d.Kind = "audit" })
		for range 2 {
			s.startWorker(cfg, failingIfBad, func(e *engine.Engine) {
				engine.HandleRaw(e, "audit", func(context.Context, *engine.Raw) error { return failure.NeverRetry(errFailed) })
			})
		}
		time.Sleep(3 * time.Minute)
		if _, gone := s.purged(good); !gone {
			t.Error("what ended well was not purged")
		}
		if _, gone := s.purged(failed); gone {
			t.Error("a dead letter was deleted without a warning")
		}
		events, err := s.store.Events(context.Background(), "retention", 10)
		if err != nil || len(events) != 1 || events[0].Name != "warning" || !strings.Contains(events[0].Reason, "1 so far") {
			t.Fatalf("events %+v, %v", events, err)
		}
		time.Sleep(3 * time.Minute)
		if _, gone := s.purged(failed); gone {
			t.Error("a dead letter was deleted before the time that the warning named")
		}
		time.Sleep(4 * time.Minute)
		rule, gone := s.purged(failed)
		expect(s, "purged", gone, true)
		expect(s, "rule", rule, "short")
		if _, gone := s.purged(audit); gone {
			t.Error("what is kept for ever was purged")
		}
		second := s.enqueue(bad)
		s.waitForState(second, holdfast.Failed)
		time.Sleep(3 * time.Minute)
		if _, gone := s.purged(second); !gone {
			t.Error("after the first time there is no second wait")
		}
		expect(s, "warnings", len(s.eventNames("retention")), 1)
	})
}

func TestAppliedRulesReplaceThoseOfTheConfigAndANewRuleWarnsAgain(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.startWorker(engine.Config{RetentionWarning: 5 * time.Minute}, failingIfBad)
		good, failed := s.enqueue(), s.enqueue(bad)
		s.waitForState(failed, holdfast.Failed)
		s.waitForState(good, holdfast.Complete)
		s.writeRecord("retention", "rules", []store.RetentionRule{{Name: "keep", State: holdfast.Complete, For: store.Forever}, {Name: "rest", For: time.Second}})
		time.Sleep(4 * time.Minute)
		s.writeRecord("retention", "rules", []store.RetentionRule{{Name: "keep", State: holdfast.Complete, For: store.Forever}, {Name: "rest", For: 2 * time.Second}})
		time.Sleep(4 * time.Minute)
		if _, gone := s.purged(failed); gone {
			t.Error("a rule that was changed did not warn anew")
		}
		time.Sleep(4 * time.Minute)
		_, gone := s.purged(failed)
		expect(s, "the dead letter is purged", gone, true)
		_, gone = s.purged(good)
		expect(s, "what is kept for ever is purged", gone, false)
		expect(s, "warnings", len(s.eventNames("retention")), 2)
	})
}

func TestUnreadableRulesPurgeNothing(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.writeRecord("retention", "rules", "nonsense")
		s.startWorker(engine.Config{Retention: []store.RetentionRule{{Name: "all", For: 0}}}, failingIfBad)
		good := s.waitForState(s.enqueue(), holdfast.Complete)
		time.Sleep(3 * time.Minute)
		if _, gone := s.purged(good.ID); gone {
			t.Error("it was purged")
		}
		if s.dutyStatuses()["retention"].Error == "" {
			t.Error("the duty reports no error")
		}
	})
}

func TestARequestedRunOfRetentionPurgesEverythingAtOnce(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.startWorker(engine.Config{Slots: 50, Retention: []store.RetentionRule{}}, failingIfBad)
		s.enqueueAll(2500)
		s.waitUntil("all complete", func() bool { return s.countJobs(holdfast.Complete) == 2500 })
		time.Sleep(2 * time.Second)
		s.writeRecord("retention", "rules", []store.RetentionRule{{Name: "all", For: 0}})
		s.requestDuty("retention", duty.Control{Run: 1})
		time.Sleep(3 * time.Second)
		expect(s, "left", s.countJobs(holdfast.Complete), 0)
	})
}

func TestArtifactsExpireOnceWithALineInTheStoryOfTheirJob(t *testing.T) {
	for _, deletes := range []bool{true, false} {
		inBubble(t, func(s *harness) {
			var mu sync.Mutex
			var deleted []string
			stubborn := true
			cfg := engine.Config{DeleteArtifact: func(_ context.Context, a store.Artifact) error {
				mu.Lock()
				defer mu.Unlock()
				if a.Name == "stubborn" && stubborn {
					return errFailed
				}
				deleted = append(deleted, a.Ref)
				return nil
			}}
			if !deletes {
				cfg.DeleteArtifact, stubborn = nil, false
			}
			job := s.enqueue()
			keep := store.Change{Artifacts: []store.Artifact{
				{Job: job, Name: "source", Ref: "bucket/source", ExpireIn: time.Minute},
				{Job: job, Name: "stubborn", Ref: "bucket/stubborn", ExpireIn: time.Minute},
				{Job: job, Name: "result", Ref: "bucket/result", ExpireIn: 3 * time.Minute},
				{Job: job, Name: "for-ever", Ref: "bucket/for-ever"},
			}}
			if err := s.store.Apply(context.Background(), keep); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				s.startWorker(cfg, noted)
			}
			time.Sleep(100 * time.Second)
			if deletes {
				expect(s, "deleted", strings.Join(deleted, " "), "bucket/source")
				if s.dutyStatuses()["artifacts"].Error == "" {
					t.Error("that one could not be deleted was not reported")
				}
			}
			mu.Lock()
			stubborn = false
			mu.Unlock()
			time.Sleep(2 * time.Minute)
			all, err := s.store.Artifacts(context.Background(), store.ArtifactFilter{Job: job})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range all {
				expect(s, a.Name+" is gone", !a.ExpiredAt.IsZero(), a.Name != "for-ever")
			}
			history, err := s.store.History(context.Background(), job)
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, e := range history.Events {
				said = append(said, e.Name+": "+e.Reason)
			}
			slices.Sort(said)
			if want := []string{"expired: artifact result", "expired: artifact source", "expired: artifact stubborn"}; !slices.Equal(said, want) {
				t.Errorf("its story: %q", said)
			}
		})
	}
}
