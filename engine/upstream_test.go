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

func TestAHandlerReadsTheResultsOfTheMembersForWhichItsJobWaited(t *testing.T) {
	inBubble(t, func(s *harness) {
		var total atomic.Int64
		s.startWorker(engine.Config{}, func(e *engine.Engine) {
			engine.HandleRaw(e, "load", func(_ context.Context, job *engine.Raw) error {
				job.Result(map[string]int{"rows": 20})
				return nil
			})
			engine.HandleRaw(e, "quiet", func(context.Context, *engine.Raw) error { return nil })
			engine.HandleRaw(e, "count", func(ctx context.Context, job *engine.Raw) error {
				var loaded struct{ Rows int }
				if err := job.Upstream(ctx, "load", &loaded); err != nil {
					return err
				}
				for step, want := range map[string]error{"quiet": holdfast.ErrNotFound, "nowhere": holdfast.ErrNotFound, "": holdfast.ErrInvalid} {
					if err := job.Upstream(ctx, step, &loaded); !errors.Is(err, want) {
						t.Errorf("step %q: %v, want %v", step, err, want)
					}
				}
				var wrong []string
				if err := job.Upstream(ctx, "load", &wrong); err == nil {
					t.Error("a result was decoded into a type that it does not have")
				}
				for one, err := range job.Upstreams(ctx) {
					if err != nil {
						return err
					}
					if one.State != holdfast.Complete || one.Kind != one.Step {
						t.Errorf("an upstream member: %+v", one)
					}
					total.Add(1)
				}
				total.Add(int64(loaded.Rows))
				return nil
			})
		})
		group := s.gather(holdfast.Group{})
		load, silent := holdfast.NewID(), holdfast.NewID()
		_, err := s.store.Enqueue(context.Background(), []holdfast.Draft{
			{ID: load, Kind: "load", Group: group, Step: "load"}, {ID: silent, Kind: "quiet", Group: group, Step: "quiet"},
			{Kind: "count", Group: group, After: []holdfast.ID{load, silent}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.seal(group)
		s.waitForGroup(group, holdfast.GroupReady)
		expect(s, "rows and members", total.Load(), 22)
	})
}

func TestAJobThatATestMakesHasNoUpstreamMembers(t *testing.T) {
	job := &engine.Job[json.RawMessage]{}
	if err := job.Upstream(t.Context(), "load", new(int)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Error(err)
	}
	for one := range job.Upstreams(t.Context()) {
		t.Errorf("there is %+v", one)
	}
}
