package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
)

func TestAHandlerAddsMembersToItsSealedGroupOnceHoweverOftenItIsTried(t *testing.T) {
	inBubble(t, func(s *harness) {
		var tries, pages atomic.Int64
		s.startWorker(engine.Config{}, func(e *engine.Engine) {
			engine.HandleRaw(e, "list", func(_ context.Context, job *engine.Raw) error {
				for range 3 {
					if err := job.Enqueue(holdfast.Draft{Kind: "page", Group: job.Group}); err != nil {
						return err
					}
				}
				if err := job.Enqueue(holdfast.Draft{Kind: "not a name"}); !errors.Is(err, holdfast.ErrInvalid) {
					t.Errorf("an invalid draft: %v", err)
				}
				if tries.Add(1) < 3 {
					return errFailed
				}
				return nil
			})
			engine.HandleRaw(e, "page", func(context.Context, *engine.Raw) error { pages.Add(1); return nil })
		})
		group := s.gather(holdfast.Group{})
		if _, err := s.store.Enqueue(context.Background(), []holdfast.Draft{{Kind: "list", Group: group}}); err != nil {
			t.Fatal(err)
		}
		s.seal(group)
		g := s.waitForGroup(group, holdfast.GroupReady)
		expect(s, "members", g.Members, holdfast.Members{Total: 4, Complete: 4})
		expect(s, "pages", pages.Load(), 3)
	})
}

func TestAJobWhoseDraftsTheStoreRefusesFailsForGood(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.startWorker(engine.Config{}, func(e *engine.Engine) {
			engine.HandleRaw(e, "list", func(_ context.Context, job *engine.Raw) error {
				return job.Enqueue(holdfast.Draft{Kind: "page", Group: holdfast.NewID()})
			})
		})
		receipts, err := s.store.Enqueue(context.Background(), []holdfast.Draft{{Kind: "list"}})
		if err != nil {
			t.Fatal(err)
		}
		job := s.waitForState(receipts[0].ID, holdfast.Failed)
		expect(s, "code", job.LastFailure.Code, "SYSTEM_ERROR")
	})
}

func TestAJobThatATestMakesValidatesWhatItEnqueues(t *testing.T) {
	job := &engine.Job[json.RawMessage]{}
	if err := job.Enqueue(holdfast.Draft{Kind: "page"}); err != nil {
		t.Error(err)
	}
	if err := job.Enqueue(holdfast.Draft{}); !errors.Is(err, holdfast.ErrInvalid) {
		t.Error(err)
	}
}
