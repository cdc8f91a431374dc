package main

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// The load list of the specification: high retry volume, the scheduler under load, the depth of the queue, the scaling of workers. What is checked is that everything
// ends as it should; times are for the benchmark.

// submitMany asks for shots of documents that fail while the origin is down, in bulk.
func (s *scene) submitMany(n int) (ids []holdfast.ID) {
	s.Helper()
	for len(ids) < n {
		var requests []any
		for range min(100, n-len(ids)) {
			requests = append(requests, map[string]any{"html": `<img src="` + s.origin.URL + `/picture">`, "width": 64, "height": 64, "failOnRequestErrors": true, "allowBlank": true})
		}
		var done struct{ Screenshots []service.Job }
		a := s.call("POST", "/api/v1/screenshots/bulk", map[string]any{"requests": requests}, "Idempotency-Key", holdfast.NewID().String())
		if a.into(s, &done); a.Status != 202 {
			s.Fatalf("%d %s", a.Status, a.Body)
		}
		for _, job := range done.Screenshots {
			ids = append(ids, job.ID)
		}
	}
	return ids
}

func TestManyRetriesAtOnceAllEndAndCostNothing(t *testing.T) {
	onBoth(t, func(s *scene) {
		n := soak.Pick("shots whose retries come at the same time", 5, 1000)
		ids := s.submitMany(n)
		s.has(1_000_000-int64(n), int64(n), 0)
		if a := s.call("GET", "/api/v1/screenshots/"+ids[n-1].String(), nil); !strings.Contains(string(a.Body), `"queuePosition":`+strconv.Itoa(n)) {
			s.Errorf("the place in the queue is not %d: %s", n, a.Body)
		}
		if d, err := s.service.Depth(s.Context()); err != nil || d.Ready != n {
			s.Errorf("the depth of the queue is %+v, %v", d, err)
		}
		s.origin.setDown(true)
		s.works()
		s.until("all wait for a retry or have failed", func() bool {
			d, err := s.service.Depth(s.Context())
			return err == nil && d.Ready == 0 && d.Processing == 0
		})
		s.origin.setDown(false)
		for _, id := range ids {
			s.until("it has ended", func() bool { at := s.get(id).Status; return at == service.Completed || at == service.Failed })
		}
		complete := int64(0)
		for _, id := range ids {
			if s.get(id).Status == service.Completed {
				complete++
			}
		}
		s.has(1_000_000-complete, 0, complete)
		s.sound()
	}, "WELCOME_CREDITS", "1000000")
}

func TestASecondWorkerTakesItsShareOfTheShots(t *testing.T) {
	onBoth(t, func(s *scene) {
		ids := s.submitMany(soak.Pick("shots of two workers", 6, 200))
		s.works()
		second, err := s.engine()
		if err != nil {
			s.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- second.Run(ctx) }()
		workers := map[string]int{}
		for _, id := range ids {
			s.ended(id, service.Completed)
			job, err := s.jobs.Job(s.Context(), id)
			if err != nil {
				s.Fatal(err)
			}
			workers[job.Worker]++
		}
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
		if len(workers) != 2 {
			s.Errorf("%v", workers)
		}
		s.sound()
	})
}
