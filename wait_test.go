package holdfast_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A oneJob is a JobReader with one job, which counts how often it is read.
type oneJob struct {
	mu    sync.Mutex
	job   holdfast.Job
	err   error
	reads int
}

func (o *oneJob) Job(context.Context, holdfast.ID) (holdfast.Job, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads++
	return o.job, o.err
}

func (o *oneJob) set(change func(*holdfast.Job)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.job)
}

// endsAfter makes the job complete with a result after that time.
func (o *oneJob) endsAfter(after time.Duration, result string) {
	time.AfterFunc(after, func() {
		o.set(func(j *holdfast.Job) { j.State, j.Result = holdfast.Complete, json.RawMessage(result) })
	})
}

type total struct{ Sum int }

func TestWaitReturnsTheResultSoonAfterTheEndAndReadsSeldom(t *testing.T) {
	for after, most := range map[time.Duration]struct {
		late  time.Duration
		reads int
	}{
		10 * time.Millisecond: {10 * time.Millisecond, 4},
		time.Second:           {500 * time.Millisecond, 14},
		time.Hour:             {time.Second, 3620},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := &oneJob{job: holdfast.Job{State: holdfast.Queued}}
			from.endsAfter(after, `{"Sum":42}`)
			begun := time.Now()
			got, err := holdfast.Wait[total](context.Background(), from, holdfast.ID{1})
			if err != nil || got.Sum != 42 {
				t.Errorf("got %+v, %v", got, err)
			}
			if late := time.Since(begun) - after; late < 0 || late > most.late {
				t.Errorf("a job that ends after %v is answered %v later", after, late)
			}
			if from.reads > most.reads {
				t.Errorf("a job that ends after %v is read %d times, want at most %d", after, from.reads, most.reads)
			}
		})
	}
}

func TestAJobThatIsNotCompleteIsAJobError(t *testing.T) {
	upstream := holdfast.NewID()
	for want, job := range map[string]holdfast.Job{
		"failed: GW_5XX: The gateway failed.": {State: holdfast.Failed, LastFailure: &holdfast.Failure{Code: "GW_5XX", Message: "The gateway failed."}},
		"was cancelled":                       {State: holdfast.Cancelled, LastFailure: &holdfast.Failure{Code: "GW_5XX"}},
		upstream.String() + ", for which":     {State: holdfast.Cancelled, Upstream: upstream},
	} {
		job.Kind = "charge"
		_, err := holdfast.Wait[total](context.Background(), &oneJob{job: job}, holdfast.ID{1})
		var ended *holdfast.JobError
		if !errors.As(err, &ended) || ended.Job.State != job.State || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a JobError with %q", err, want)
		}
		if code := ended.Code; code != "" && job.State == holdfast.Cancelled {
			t.Errorf("a cancelled job has the code %s", code)
		}
	}
}

func TestWaitReturnsTheErrorsOfTheReaderAndOfItsContext(t *testing.T) {
	purged := &holdfast.Error{Err: holdfast.ErrPurged, Message: "retention has deleted it"}
	if _, err := holdfast.Wait[total](context.Background(), &oneJob{err: purged}, holdfast.ID{1}); !errors.Is(err, holdfast.ErrPurged) {
		t.Errorf("a purged job: %v", err)
	}
	if _, err := holdfast.Wait[total](context.Background(), &oneJob{job: holdfast.Job{State: holdfast.Complete, Result: json.RawMessage(`[]`)}}, holdfast.ID{1}); err == nil || !strings.Contains(err.Error(), "cannot be decoded into holdfast_test.total") {
		t.Errorf("a result of another type: %v", err)
	}
	if got, err := holdfast.Wait[total](context.Background(), &oneJob{job: holdfast.Job{State: holdfast.Complete}}, holdfast.ID{1}); err != nil || got.Sum != 0 {
		t.Errorf("a job without a result: %v, %v", got, err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		begun := time.Now()
		job, err := holdfast.WaitJob(ctx, &oneJob{job: holdfast.Job{State: holdfast.Processing}}, holdfast.ID{1})
		if !errors.Is(err, context.DeadlineExceeded) || job.State != holdfast.Processing || time.Since(begun) != time.Minute {
			t.Errorf("after %v: %s, %v", time.Since(begun), job.State, err)
		}
	})
}

// A hinted reader tells when its job ends.
type hinted struct {
	*oneJob
	hint    chan struct{}
	stopped bool
}

func (h *hinted) EndHint(holdfast.ID) (<-chan struct{}, func()) {
	return h.hint, func() { h.stopped = true }
}

func TestWaitUsesTheHintOfAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &hinted{oneJob: &oneJob{job: holdfast.Job{State: holdfast.Queued}}, hint: make(chan struct{}, 1)}
		time.AfterFunc(100*time.Second+time.Millisecond, func() {
			from.set(func(j *holdfast.Job) { j.State = holdfast.Complete })
			from.hint <- struct{}{}
		})
		begun := time.Now()
		if _, err := holdfast.WaitJob(context.Background(), from, holdfast.ID{1}); err != nil || time.Since(begun) != 100*time.Second+time.Millisecond || !from.stopped {
			t.Errorf("after %v, stopped %v: %v", time.Since(begun), from.stopped, err)
		}
	})
}

// A lateStore answers every read with an error of its own, as a store does that cannot read because the context has ended.
type lateStore struct{ err error }

func (l lateStore) Job(context.Context, holdfast.ID) (holdfast.Job, error) {
	return holdfast.Job{}, &holdfast.Error{Err: l.err, Message: "could not read the clock"}
}

// A lateServer is the same, and waits by itself.
type lateServer struct{ lateStore }

func (l lateServer) WaitJob(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return l.Job(ctx, id)
}

func TestWaitWithAnEndedContextReturnsItsError(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for _, from := range []holdfast.JobReader{lateStore{holdfast.ErrUnavailable}, lateServer{lateStore{holdfast.ErrUnavailable}}} {
		if _, err := holdfast.Wait[total](ctx, from, holdfast.ID{1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%T: %v", from, err)
		}
		if _, err := holdfast.Wait[total](t.Context(), from, holdfast.ID{1}); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("%T, with time left: %v", from, err)
		}
	}
	if _, err := holdfast.Wait[total](ctx, lateStore{holdfast.ErrNotFound}, holdfast.ID{1}); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("an answer of the store: %v", err)
	}
}
