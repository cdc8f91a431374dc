package ops

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

func expectNames(t *testing.T, what string, reasons []Reason, want ...string) {
	t.Helper()
	var names []string
	for _, reason := range reasons {
		names = append(names, reason.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s is explained by %q, wanted %q", what, names, want)
	}
}

func TestReasonsThatDependOnTimeAreExplained(t *testing.T) {
	s := New(nil, Config{})
	worker := queueView{workers: []store.WorkerInfo{{Worker: "w1", Queues: []string{"q"}, Kinds: []string{"k"}, Slots: 1}}}
	job := holdfast.Job{State: holdfast.Queued, Queue: "q", Kind: "k", AsOf: noon, Generation: 1}

	snoozed := job
	snoozed.Releases, snoozed.DueAt = 1, at(9)
	expectNames(t, "a released job", s.queuedReasons(snoozed, worker), "released")

	expiring := job
	expiring.ExpireAt = at(-1)
	expectNames(t, "a job past its expiry", s.queuedReasons(expiring, worker), "expiring")

	crashed := job
	crashed.Crashes, crashed.DueAt = 1, at(9)
	expectNames(t, "a job whose worker was lost", s.queuedReasons(crashed, worker), "retry")

	crowd := worker
	crowd.ahead = 1000
	crowd.holds = []jobHold{{hold: store.Hold{Queue: "q", Actor: "ann", Since: noon, Until: at(60)}}, {hold: store.Hold{Kind: "k", Actor: "bob"}}}
	reasons := s.queuedReasons(crashed, crowd)
	expectNames(t, "a job that everything holds", reasons, "retry", "queue paused", "kind paused", "jobs ahead")
	if reasons[1].Until != at(60) || reasons[1].Remedy == "" {
		t.Errorf("the hold is explained by %+v", reasons[1])
	}
}

func TestAnotherQueuesJobsDoNotFillASlot(t *testing.T) {
	job := holdfast.Job{Queue: "q", Kind: "k"}
	workers := []store.WorkerInfo{{Worker: "w1", Queues: []string{"q"}, Kinds: []string{"k"}, Slots: 2}}
	expectNames(t, "a job with a free slot", workerReasons(job, queueView{workers: workers, busy: []holdfast.Job{{Worker: "w1"}, {Worker: "gone"}}}))
	expectNames(t, "a job without one", workerReasons(job, queueView{workers: workers, busy: []holdfast.Job{{Worker: "w1"}, {Worker: "w1"}}}), "slots busy")
}

func TestASilentWorkerIsExplained(t *testing.T) {
	job := holdfast.Job{State: holdfast.Processing, Worker: "w1", AsOf: noon, StartedAt: at(-60), LeaseUntil: noon}
	expectNames(t, "a job past its lease", processingReasons(job), "lease expired")
	job.LeaseUntil, job.Cancelling = noon.Add(time.Second), true
	expectNames(t, "a job that is asked to stop", processingReasons(job), "processing", "cancelling")
}

func TestAJobThatWaitsInALineIsExplainedByTheFirst(t *testing.T) {
	job, first := holdfast.Job{Order: "account-17"}, holdfast.Job{ID: holdfast.NewID(), Kind: "apply", State: holdfast.Processing}
	for state, remedy := range map[holdfast.State]string{holdfast.Processing: "holdfast explain " + first.ID.String(), holdfast.Failed: "holdfast discard " + first.ID.String()} {
		first.State = state
		r := lineReason(job, first)
		if r.Name != "line" || !strings.Contains(r.Text, first.ID.String()) || !strings.Contains(r.Text, "account-17") || !strings.Contains(r.Remedy, remedy) {
			t.Errorf("behind a job that is %s: %+v", state, r)
		}
	}
}

func TestADamagedJobIsSentToTheDoctor(t *testing.T) {
	expectNames(t, "a job without a state", New(nil, Config{}).endedReasons(holdfast.Job{}, failure.Code{}), "damaged")
}
