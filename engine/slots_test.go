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
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

// Letter is a second kind of jobs.
type Letter struct{}

func (Letter) Kind() string { return "letter" }

// usage counts the handlers that run, by queue and by kind, and the most that ran at once.
type usage struct {
	mu        sync.Mutex
	now, most map[string]int
	ended     map[string]int
}

func newUsage() *usage {
	return &usage{now: map[string]int{}, most: map[string]int{}, ended: map[string]int{}}
}

// run counts one run that takes that long.
func (u *usage) run(ctx context.Context, job holdfast.Job, takes time.Duration) error {
	names := []string{job.Queue, job.Kind, "all"}
	u.count(names, 1)
	defer u.count(names, -1)
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *usage) count(names []string, by int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range names {
		u.now[name] += by
		u.most[name] = max(u.most[name], u.now[name])
		if by < 0 {
			u.ended[name]++
		}
	}
}

func (u *usage) running(name string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.now[name]
}

func (u *usage) peak(name string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.most[name]
}

func (u *usage) finished(name string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended[name]
}

// handleBoth registers handlers of notes and letters that take that long.
func (u *usage) handleBoth(takes time.Duration, letters ...engine.KindOptions) func(*engine.Engine) {
	return func(e *engine.Engine) {
		engine.Handle(e, func(ctx context.Context, job *engine.Job[Note]) error { return u.run(ctx, job.Job, takes) })
		engine.Handle(e, func(ctx context.Context, job *engine.Job[Letter]) error { return u.run(ctx, job.Job, takes) }, letters...)
	}
}

// enqueueTo enqueues a job with these arguments that many times into a queue.
func enqueueTo[A holdfast.Args](s *harness, queue string, n int, args A) {
	s.Helper()
	if _, err := holdfast.EnqueueAll(context.Background(), s.store, slices.Repeat([]A{args}, n), func(d *holdfast.Draft) { d.Queue = queue }); err != nil {
		s.Fatal(err)
	}
}

func (s *harness) workerReport() store.WorkerInfo {
	s.Helper()
	all, err := s.store.Workers(context.Background())
	if err != nil || len(all) != 1 {
		s.Fatalf("workers: %v, %v", all, err)
	}
	return all[0]
}

// leased counts the jobs of a queue that a worker holds.
func (s *harness) leased(queue string) (n int) {
	s.Helper()
	counts, err := s.store.Counts(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range counts {
		if c.State == holdfast.Processing && c.Queue == queue {
			n += c.Jobs
		}
	}
	return n
}

func TestAQueueRunsNoMoreJobsThanItsSlotsAndLeavesTheOthersFree(t *testing.T) {
	inBubble(t, func(s *harness) {
		u := newUsage()
		enqueueTo(s, "mail", 40, Note{})
		enqueueTo(s, "default", 40, Note{})
		s.startWorker(engine.Config{Slots: 10, Queues: []string{"mail", "default"}, QueueSlots: map[string]int{"mail": 2}}, u.handleBoth(10*time.Second))
		s.waitUntil("all slots to be used", func() bool { return u.running("all") == 10 })
		expect(s, "mail at once", u.running("mail"), 2)
		expect(s, "others at once", u.running("default"), 8)
		expect(s, "leases of mail", s.leased("mail"), 2)
		s.waitUntil("the others to end", func() bool { return u.finished("default") == 40 })
		s.waitUntil("mail to end", func() bool { return u.finished("mail") == 40 })
		expect(s, "most of mail at once", u.peak("mail"), 2)
	})
}

func TestAFullKindDelaysNoOtherKind(t *testing.T) {
	inBubble(t, func(s *harness) {
		u := newUsage()
		enqueueTo(s, "default", 60, Letter{})
		s.startWorker(engine.Config{Slots: 6}, u.handleBoth(10*time.Second, engine.KindOptions{Slots: 3}))
		s.waitUntil("letters to fill their slots", func() bool { return u.running("letter") == 3 })
		enqueueTo(s, "default", 30, Note{}) // behind letters that wait
		begun := time.Now()
		s.waitUntil("the notes to end", func() bool { return u.finished("note") == 30 })
		if took := time.Since(begun); took > 105*time.Second {
			t.Errorf("30 notes of 10 s in three slots took %v, want about 100 s", took)
		}
		s.waitUntil("the letters to end", func() bool { return u.finished("letter") == 60 })
		expect(s, "most letters at once", u.peak("letter"), 3)
	})
}

func TestSlotsOfQueuesAndKindsHoldTogether(t *testing.T) {
	inBubble(t, func(s *harness) {
		u := newUsage()
		for _, queue := range []string{"default", "mail", "slow"} {
			enqueueTo(s, queue, 30, Note{})
			enqueueTo(s, queue, 30, Letter{})
		}
		s.startWorker(engine.Config{Slots: 12, Queues: []string{"default", "mail", "slow"}, QueueSlots: map[string]int{"mail": 5, "slow": 2}},
			u.handleBoth(5*time.Second, engine.KindOptions{Slots: 3}))
		s.waitUntil("all jobs to end", func() bool { return u.finished("all") == 180 })
		for name, most := range map[string]int{"all": 12, "mail": 5, "slow": 2, "letter": 3} {
			expect(s, "most of "+name+" at once", u.peak(name), most)
		}
	})
}

// With a slow store and fast jobs the engine holds jobs ahead of a free slot: none of a limited queue that its slots cannot run.
func TestJobsOfALimitedQueueAreNotHeldAheadOfItsSlots(t *testing.T) {
	inBubble(t, func(s *harness) {
		u := newUsage()
		most := 0
		slow := &misbehavingStore{Store: s.store, hang: func(context.Context) bool { time.Sleep(50 * time.Millisecond); return false }}
		enqueueTo(s, "default", 3000, Note{})
		enqueueTo(s, "mail", 100, Note{})
		s.startWorkerOn(slow, engine.Config{Slots: 4, Queues: []string{"default", "mail"}, QueueSlots: map[string]int{"mail": 2}}, u.handleBoth(time.Millisecond))
		s.waitUntil("the others to end", func() bool {
			most = max(most, s.leased("mail"))
			return u.finished("default") == 3000
		})
		if most > 4 { // two that run and, until their settlement is written, two that ran
			t.Errorf("%d leases of a queue with two slots", most)
		}
		if u.finished("mail") < 4 {
			t.Error("the limited queue waited until the other one was empty")
		}
	})
}

func TestSlotsChangeWhileJobsRun(t *testing.T) {
	inBubble(t, func(s *harness) {
		u := newUsage()
		enqueueTo(s, "default", 200, Note{})
		w := s.startWorker(engine.Config{Slots: 2}, u.handleBoth(10*time.Second))
		s.waitUntil("two to run", func() bool { return u.running("all") == 2 })
		for _, slots := range []int{8, 3, 20, 1} {
			if err := w.SetSlots(slots); err != nil {
				t.Fatal(err)
			}
			time.Sleep(21 * time.Second)
			expect(s, "running", u.running("all"), slots)
			expect(s, "reported slots", s.workerReport().Slots, slots)
		}
		if err := w.SetKindSlots("note", 5); err != nil {
			t.Fatal(err)
		}
		if err := w.SetKindSlots("nodes", 5); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "which handles") {
			t.Errorf("slots of a kind without a handler: %v", err)
		}
		if err := w.SetSlots(50); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		expect(s, "running of a kind with five slots", u.running("note"), 5)
		if err := errors.Join(w.SetQueueSlots("default", 4), w.SetKindSlots("note", 0)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		expect(s, "running of a queue with four slots", u.running("default"), 4)
		if err := w.SetQueueSlots("default", 0); err != nil {
			t.Fatal(err)
		}
		s.waitUntil("all slots to be used", func() bool { return u.running("all") == 50 })
	})
}

func TestAQueueIsAddedAndRemovedWhileTheEngineRuns(t *testing.T) {
	inBubble(t, func(s *harness) {
		u := newUsage()
		w := s.startWorker(engine.Config{Slots: 5, Poll: time.Minute}, u.handleBoth(10*time.Second))
		enqueueTo(s, "mail", 4, Note{})
		time.Sleep(5 * time.Minute)
		expect(s, "runs of a queue that is not claimed from", u.running("all")+u.finished("all"), 0)
		if err := w.AddQueue("mail"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		expect(s, "running after the queue was added", u.running("mail"), 4)
		expect(s, "reported queues", strings.Join(s.workerReport().Queues, " "), "default mail")
		time.Sleep(20 * time.Second)
		enqueueTo(s, "mail", 9, Note{})
		time.Sleep(time.Second)
		expect(s, "running after a wake-up of the added queue", u.running("mail"), 5)

		if err := errors.Join(w.RemoveQueue("mail"), w.RemoveQueue("default"), w.RemoveQueue("default")); err != nil {
			t.Fatal(err)
		}
		enqueueTo(s, "default", 2, Note{})
		time.Sleep(30 * time.Minute)
		expect(s, "finished", u.finished("all"), 9)
		expect(s, "reported queues", len(s.workerReport().Queues), 0)
		expect(s, "leased", s.countJobs(holdfast.Processing), 0)
		if err := errors.Join(w.AddQueue("default"), w.AddQueue("mail")); err != nil {
			t.Fatal(err)
		}
		s.waitUntil("the rest to end", func() bool { return u.finished("all") == 15 })
		for _, job := range s.allJobs() {
			expect(s, "releases", job.Releases, 0)
		}
	})
}

func (s *harness) allJobs() []holdfast.Job {
	s.Helper()
	jobs, _, err := s.store.Jobs(context.Background(), store.Filter{Limit: 200})
	if err != nil {
		s.Fatal(err)
	}
	return jobs
}

// Jobs that were claimed ahead, and jobs of a claim whose answer comes after the queue was removed, return to the queue at no cost.
func TestARemovedQueueGetsBackWhatWasClaimedAhead(t *testing.T) {
	inBubble(t, func(s *harness) {
		u := newUsage()
		answer, asked := make(chan struct{}), make(chan struct{})
		var once sync.Once
		slow := &misbehavingStore{Store: s.store, hang: func(context.Context) bool {
			once.Do(func() { close(asked); <-answer })
			return false
		}}
		w := s.startWorkerOn(slow, engine.Config{Slots: 5, Queues: []string{"mail", "default"}}, u.handleBoth(10*time.Second))
		enqueueTo(s, "mail", 3, Note{})
		enqueueTo(s, "default", 2, Note{})
		<-asked
		if err := w.RemoveQueue("mail"); err != nil {
			t.Fatal(err)
		}
		close(answer)
		s.waitUntil("the others to end", func() bool { return u.finished("default") == 2 })
		expect(s, "runs of the removed queue", u.finished("mail")+u.running("mail"), 0)
		expect(s, "leased", s.countJobs(holdfast.Processing), 0)
		for _, job := range s.allJobs() {
			if job.Queue == "mail" && (job.State != holdfast.Queued || job.Failures+job.Crashes > 0) {
				t.Errorf("a job of the removed queue is %s with %d failures and %d crashes", job.State, job.Failures, job.Crashes)
			}
			if job.Queue == "mail" && job.Releases > 0 {
				history, _ := s.store.History(context.Background(), job.ID)
				if why := history.Attempts[0].Why; !strings.Contains(why, "queues or slots were changed") {
					t.Errorf("why the job was released: %q", why)
				}
			}
		}
	})
}

// A queue whose slots are all in use causes no claims, however many jobs wait in it and however many wake-ups come.
func TestAFullQueueCausesNoClaims(t *testing.T) {
	inBubble(t, func(s *harness) {
		u := newUsage()
		enqueueTo(s, "mail", 50, Note{})
		s.startWorkerOn(s.faulty, engine.Config{Slots: 10, Queues: []string{"mail"}, QueueSlots: map[string]int{"mail": 2}, Poll: time.Minute}, u.handleBoth(9*time.Minute))
		s.waitUntil("its slots to be used", func() bool { return u.running("mail") == 2 })
		time.Sleep(5 * time.Second)
		s.faulty.Plan()
		for range 20 {
			enqueueTo(s, "mail", 1, Note{})
			time.Sleep(10 * time.Second)
		}
		expect(s, "claims while the only queue is full", s.faulty.Calls("Claim"), 0)
	})
}

// One free slot is one claim for all queues that are not full, and an empty store one claim for each part at each poll.
func TestQueuesWithSlotsCostNoClaimsWhileNothingEnds(t *testing.T) {
	inBubble(t, func(s *harness) {
		u := newUsage()
		s.startWorkerOn(s.faulty, engine.Config{Slots: 10, Queues: []string{"a", "b", "c"}, QueueSlots: map[string]int{"a": 2, "b": 3}, Poll: time.Second}, u.handleBoth(time.Second))
		time.Sleep(10 * time.Second)
		s.faulty.Plan()
		time.Sleep(100 * time.Second)
		if n := s.faulty.Calls("Claim"); n > 310 {
			t.Errorf("%d claims in 100 polls of three parts, want about 300", n)
		}
	})
}

func TestSlotsThatCannotWorkAreRefused(t *testing.T) {
	_, err := engine.New(&endlessStore{}, engine.Config{Slots: 5, Queues: []string{"a"}, QueueSlots: map[string]int{"a": 6, "b": 1}})
	for _, want := range []string{`QueueSlots["a"] is 6`, `QueueSlots names "b"`} {
		if !containsText(err, want) {
			t.Errorf("the refusal does not say %s: %v", want, err)
		}
	}
	if _, err = engine.New(&endlessStore{}, engine.Config{Queues: []string{engine.AllQueues}, QueueSlots: map[string]int{"a": 1}}); !containsText(err, "name the queues in Queues") {
		t.Errorf("slots of one queue among all: %v", err)
	}
	if _, err = engine.New(&endlessStore{}, engine.Config{QueueSlots: map[string]int{"default": 1}}); err != nil {
		t.Errorf("slots of the default queue: %v", err)
	}
	e, err := engine.New(&endlessStore{}, engine.Config{Slots: 5})
	if err != nil {
		t.Fatal(err)
	}
	bad := []error{e.SetSlots(0), e.SetSlots(-1), e.SetQueueSlots("not fine", 1), e.SetQueueSlots("a", -1), e.SetKindSlots("note", -1), e.SetKindSlots("", 1), e.SetKindSlots("not fine", 1), e.AddQueue(""), e.AddQueue("holdfast"), e.AddQueue("a*"), e.RemoveQueue("")}
	if at := slices.IndexFunc(bad, func(err error) bool { return !errors.Is(err, holdfast.ErrInvalid) }); at >= 0 {
		t.Errorf("bad change %d: %v", at, bad[at])
	}
	all, err := engine.New(&endlessStore{}, engine.Config{Queues: []string{engine.AllQueues}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{all.AddQueue("a"), all.RemoveQueue("a"), all.SetQueueSlots("a", 1)} {
		if !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("a change of one queue in an engine of all queues: %v", err)
		}
	}
}
