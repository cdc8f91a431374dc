//go:build unix

package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// A worker may claim an expired job before a sweep has found it. The engine must not run it.
func TestAJobPastItsExpiryIsNotRunAlsoWhenNobodySwept(t *testing.T) {
	s, err := anystore.Open(t.Context(), sqliteFile(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	receipt, err := holdfast.Enqueue(t.Context(), s, script{Do: doNothing}, func(d *holdfast.Draft) { d.ExpireIn = time.Millisecond })
	if err != nil {
		t.Fatal(err)
	}
	look := func() holdfast.Job {
		job, err := s.Job(t.Context(), receipt.ID)
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	for job := look(); !job.AsOf.After(job.ExpireAt); job = look() {
		sleep(t.Context(), time.Millisecond)
	}
	e, err := engine.New(s, engine.Config{Sweep: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	engine.Handle(e, func(context.Context, *engine.Job[script]) error { ran = true; return nil })
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- e.Run(ctx) }()
	for deadline := time.Now().Add(eventually); !look().State.Terminal() && time.Now().Before(deadline); {
		sleep(t.Context(), time.Millisecond)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if job := look(); job.State != holdfast.Failed || ran {
		t.Errorf("the job is %s, and its handler ran: %v; want failed and never run", job.State, ran)
	}
}
