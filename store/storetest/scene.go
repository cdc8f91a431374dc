package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const (
	shortLease = 30 * time.Second
	longAgo    = 10 * time.Minute // longer than any lease in these laws
)

// A scene is the environment of one law, with helper methods. A helper that gets an unexpected error fails the law.
type scene struct {
	testing.TB
	*Subject
	ctx    context.Context
	broken bool // the law damages rows on purpose: no integrity check at its end
}

// draft is the simplest draft.
func draft() holdfast.Draft { return holdfast.Draft{Kind: "mail", Queue: "default"} }

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

// enqueue enqueues one simple job, changed by the options, and returns its id.
func (s *scene) enqueue(change ...func(*holdfast.Draft)) holdfast.ID {
	s.Helper()
	d := draft()
	for _, c := range change {
		c(&d)
	}
	return s.enqueueAll(d)[0].ID
}

func (s *scene) enqueueAll(drafts ...holdfast.Draft) []holdfast.Receipt {
	s.Helper()
	receipts, err := s.Store.Enqueue(s.ctx, drafts)
	s.must(err)
	if len(receipts) != len(drafts) {
		s.Fatalf("%d drafts were answered with %d receipts", len(drafts), len(receipts))
	}
	return receipts
}

// claim claims up to limit jobs of the default queue and starts all of them.
func (s *scene) claim(limit int) []store.Lease {
	s.Helper()
	return s.claimAs(store.Claim{Worker: "w1", Limit: limit, Start: limit})
}

func (s *scene) claimAs(c store.Claim) []store.Lease {
	s.Helper()
	if c.Queues == nil {
		c.Queues = []string{"default"}
	}
	if c.Lease == 0 {
		c.Lease = shortLease
	}
	leases, err := s.Store.Claim(s.ctx, c)
	s.must(err)
	return leases
}

// claimOne claims one job and fails if there is none.
func (s *scene) claimOne() store.Lease {
	s.Helper()
	leases := s.claim(1)
	if len(leases) != 1 {
		s.Fatalf("claimed %d jobs, want 1", len(leases))
	}
	return leases[0]
}

// start enqueues one job and claims it.
func (s *scene) start(change ...func(*holdfast.Draft)) store.Lease {
	s.Helper()
	id := s.enqueue(change...)
	lease := s.claimOne()
	if lease.ID != id {
		s.Fatalf("claimed %v, want %v", lease.ID, id)
	}
	return lease
}

// settle settles leases and expects that each settlement is applied.
func (s *scene) settle(settlements ...store.Settlement) {
	s.Helper()
	for i, err := range s.trySettle(settlements...) {
		if err != nil {
			s.Fatalf("settlement %d (%s) was refused: %v", i, settlements[i].To, err)
		}
	}
}

func (s *scene) trySettle(settlements ...store.Settlement) []error {
	s.Helper()
	answers, err := s.Store.Settle(s.ctx, settlements)
	s.must(err)
	if len(answers) != len(settlements) {
		s.Fatalf("%d settlements got %d answers", len(settlements), len(answers))
	}
	return answers
}

func ends(l store.Lease, to holdfast.State) store.Settlement {
	return store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: to}
}

func completes(l store.Lease) store.Settlement { return ends(l, holdfast.Complete) }

func fails(l store.Lease, code string) store.Settlement {
	e := ends(l, holdfast.Failed)
	e.Charge, e.Limit, e.Why = store.ChargeFailure, l.Failures+1, "the last attempt allowed"
	e.Failure = &holdfast.Failure{Code: code, Category: "test", Message: "it broke", Fingerprint: "print-" + code}
	return e
}

// retries is an attempt that failed and is retried after a delay.
func retries(l store.Lease, delay time.Duration) store.Settlement {
	e := fails(l, "FLAKY")
	e.To, e.Delay, e.Limit, e.Why = holdfast.Queued, delay, 25, "worth another try"
	return e
}

func releases(l store.Lease, charge store.Charge, delay time.Duration) store.Settlement {
	e := ends(l, holdfast.Queued)
	e.Charge, e.Delay, e.Why = charge, delay, "released"
	return e
}

// fail makes a job that has failed for good.
func (s *scene) fail(change ...func(*holdfast.Draft)) store.Lease {
	s.Helper()
	lease := s.start(change...)
	s.settle(fails(lease, "BROKEN"))
	return lease
}

// reclaim reclaims expired batches.
func (s *scene) reclaim() []store.Lease {
	s.Helper()
	leases, err := s.Store.Reclaim(s.ctx, store.Claim{Worker: "reclaimer", Limit: 1000, Lease: shortLease})
	s.must(err)
	return leases
}

func (s *scene) expire() []store.Lease {
	s.Helper()
	leases, err := s.Store.Expire(s.ctx, store.Claim{Worker: "reclaimer", Limit: 1000, Lease: shortLease})
	s.must(err)
	return leases
}

func (s *scene) promote(limit int) int {
	s.Helper()
	n, err := s.Store.Promote(s.ctx, limit)
	s.must(err)
	return n
}

func (s *scene) renew(renewals ...store.Renewal) store.RenewResult {
	s.Helper()
	renewed, err := s.Store.Renew(s.ctx, renewals, shortLease)
	s.must(err)
	return renewed
}

func by(id holdfast.ID) store.Intervention {
	return store.Intervention{Job: id, Actor: "ada", Reason: "because"}
}

// retry is a manual retry that must succeed.
func (s *scene) retry(id holdfast.ID) int {
	s.Helper()
	ahead, err := s.Store.Retry(s.ctx, by(id))
	s.must(err)
	return ahead
}

// expectRetryRefused expects that a manual retry is a conflict.
func (s *scene) expectRetryRefused(id holdfast.ID) {
	s.Helper()
	_, err := s.Store.Retry(s.ctx, by(id))
	s.expectError(err, holdfast.ErrConflict)
}

func (s *scene) cancel(id holdfast.ID) holdfast.State {
	s.Helper()
	state, err := s.Store.Cancel(s.ctx, by(id))
	s.must(err)
	return state
}

func (s *scene) job(id holdfast.ID) holdfast.Job {
	s.Helper()
	job, err := s.Store.Job(s.ctx, id)
	s.must(err)
	return job
}

func (s *scene) history(id holdfast.ID) store.History {
	s.Helper()
	h, err := s.Store.History(s.ctx, id)
	s.must(err)
	return h
}

// late counts the late settlements of a job.
func (s *scene) late(id holdfast.ID) (n int) {
	s.Helper()
	for _, a := range s.history(id).Attempts {
		if a.Late {
			n++
		}
	}
	return n
}

// jobs returns all jobs that a filter matches, over all pages.
func (s *scene) jobs(f store.Filter) (all []holdfast.Job) {
	s.Helper()
	for {
		page, cursor, err := s.Store.Jobs(s.ctx, f)
		s.must(err)
		all = append(all, page...)
		if cursor == "" {
			return all
		}
		f.Cursor = cursor
	}
}

func (s *scene) expectState(id holdfast.ID, want holdfast.State) holdfast.Job {
	s.Helper()
	job := s.job(id)
	if job.State != want {
		s.Fatalf("job %v is %s, want %s", id, job.State, want)
	}
	return job
}

// expectCounts compares token, failures, crashes, releases and generation.
func (s *scene) expectCounts(id holdfast.ID, want [5]int) holdfast.Job {
	s.Helper()
	j := s.job(id)
	if got := [5]int{j.Token, j.Failures, j.Crashes, j.Releases, j.Generation}; got != want {
		s.Fatalf("token, failures, crashes, releases, generation are %v, want %v", got, want)
	}
	return j
}

func (s *scene) expectError(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("got error %v, want one that is %q", err, want)
	}
}

// expectConflict expects a conflict that names the job in the way.
func (s *scene) expectConflict(err error, holder holdfast.ID) {
	s.Helper()
	s.expectError(err, holdfast.ErrConflict)
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Job != holder {
		s.Fatalf("the conflict does not name job %v: %#v", holder, err)
	}
}

func (s *scene) expectJobs(want int) {
	s.Helper()
	if got := len(s.jobs(store.Filter{Limit: 200})); got != want {
		s.Fatalf("the store holds %d jobs, want %d", got, want)
	}
}

func (s *scene) expectHealthy() {
	s.Helper()
	findings, err := s.Store.CheckIntegrity(s.ctx)
	s.must(err)
	for _, f := range findings {
		s.Errorf("the integrity check found: %s: %s %s", f.Rule, f.Job, f.Detail)
	}
}

// same compares what the store returned with what it should return.
func same(s testing.TB, what string, got, want any) {
	s.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
		s.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func ids(leases []store.Lease) []holdfast.ID {
	all := make([]holdfast.ID, 0, len(leases))
	for _, l := range leases {
		all = append(all, l.ID)
	}
	return all
}

// together runs n goroutines and waits for them. They start as close to each other as possible.
func together(n int, run func(i int)) {
	var ready, finished sync.WaitGroup
	ready.Add(n)
	for i := range n {
		finished.Go(func() {
			ready.Done()
			ready.Wait()
			run(i)
		})
	}
	finished.Wait()
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func at(d time.Duration) func(*holdfast.Draft) { return func(j *holdfast.Draft) { j.Delay = d } }

func unique(key string) func(*holdfast.Draft) {
	return func(j *holdfast.Draft) { j.UniqueKey = key }
}
