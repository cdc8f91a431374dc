package ledger_test

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/store"
)

const kind = "fetch.resource"

// A feed is the events that happened, in memory.
type feed struct {
	events []store.Event
	purged int64
}

// Feed returns the events after a number, at most three at a time, so that one job's events are read in several pages.
func (f *feed) Feed(_ context.Context, after int64, limit int) (store.Feed, error) {
	page := store.Feed{Next: after, Head: int64(len(f.events)), Purged: f.purged}
	if after < f.purged {
		page.Missed, after = f.purged-after, f.purged
		page.Next = after
	}
	for _, e := range f.events[after:] {
		if len(page.Events) == min(limit, 3) {
			break
		}
		page.Events = append(page.Events, e)
		page.Next = e.Seq
	}
	return page, nil
}

// A job is a FetchBox job to which things happen.
type job struct {
	f       *feed
	id      holdfast.ID
	members []holdfast.ID
}

var begin = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func (f *feed) add(e store.Event) {
	e.Seq = int64(len(f.events)) + 1
	e.At = begin.Add(time.Duration(e.Seq) * time.Second)
	f.events = append(f.events, e)
}

func (f *feed) job(owner string, resources int) *job {
	j := &job{f: f, id: holdfast.NewID()}
	for range resources {
		id := holdfast.NewID()
		j.members = append(j.members, id)
		f.add(store.Event{Name: store.EventQueued, Kind: kind, Job: id, Group: j.id, Owner: owner})
	}
	return j
}

// happens adds an event of a resource: its name, and a code or a sequence number.
func (j *job) happens(member int, name string, detail ...string) {
	e := store.Event{Name: name, Kind: kind, Job: j.members[member], Group: j.id, Attempt: 1}
	if len(detail) > 0 && name == "dead letter" {
		e.Request = detail[0]
	} else if len(detail) > 0 {
		e.Code, e.Message, e.Context = detail[0], "it failed", map[string]string{"proxy": "eu#1"}
	}
	j.f.add(e)
}

func open(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(filepath.Join(t.TempDir(), "ledger.db"), ledger.Config{Kind: kind, Letter: "dead letter", Retryable: func(name string) bool { return code.Of(name).Retryable }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func read(t *testing.T, l *ledger.Ledger, f *feed) {
	t.Helper()
	if _, _, err := l.Step(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func snapshot(t *testing.T, l *ledger.Ledger, j *job) ledger.JobSnapshot {
	t.Helper()
	s, found, err := l.Job(j.id)
	if err != nil || !found {
		t.Fatalf("%v %v", found, err)
	}
	return s
}

// F6: the status of a job by what happened to its resources, one event after another. A line is "resource event [code]", and then what must hold.
func TestTheStatusFollowsTheResources(t *testing.T) {
	for name, story := range map[string]string{
		"all stored":                 "0 processing -> processing; 0 complete -> processing; 1 processing -> processing; 1 complete -> complete",
		"one failed after retries":   "0 complete -> processing; 1 retry DOWNLOAD_TIMEOUT -> processing; 1 failed DOWNLOAD_TIMEOUT -> partial",
		"all failed after retries":   "0 failed DOWNLOAD_TIMEOUT -> processing; 1 failed DOWNLOAD_HTTP_5XX -> failed",
		"one failed without a retry": "0 failed DOWNLOAD_HTTP_4XX -> failed; 1 complete -> failed",
		"replayed":                   "0 failed DOWNLOAD_HTTP_4XX -> failed; 1 complete -> failed; 0 redrive -> processing; 0 complete -> complete",
		"retried by a person":        "0 failed DOWNLOAD_HTTP_4XX -> failed; 0 manual retry -> queued; 0 failed DOWNLOAD_HTTP_4XX -> failed",
		"cancelled":                  "0 cancelled -> processing; 1 cancelled -> cancelled",
		"partly cancelled":           "0 complete -> processing; 1 cancelled -> partial",
		"released and reclaimed":     "0 processing -> processing; 0 released -> queued; 0 processing -> processing; 0 reclaimed -> processing; 0 retry SYSTEM_WORKER_LOST -> processing",
	} {
		t.Run(name, func(t *testing.T) {
			f, l := &feed{}, open(t)
			j := f.job("acme", 2)
			for step := range strings.SplitSeq(story, "; ") {
				what, want, _ := strings.Cut(step, " -> ")
				member, event, _ := strings.Cut(what, " ")
				n, _ := strconv.Atoi(member)
				failed := ""
				if at := strings.LastIndexByte(event, ' '); at > 0 && strings.ToUpper(event[at+1:]) == event[at+1:] {
					event, failed = event[:at], event[at+1:]
				}
				if failed == "" {
					j.happens(n, event)
				} else {
					j.happens(n, event, failed)
				}
				read(t, l, f)
				if got := snapshot(t, l, j); string(got.Status) != want {
					t.Errorf("after %q it is %s, want %s: %+v", what, got.Status, want, got)
				}
			}
		})
	}
}

// F6: failure information, the count of failed resources, and the pointer to the dead letter.
func TestAFailureIsInTheSnapshotWithItsDeadLetter(t *testing.T) {
	f, l := &feed{}, open(t)
	j := f.job("acme", 3)
	j.happens(0, store.EventRetry, "DOWNLOAD_TIMEOUT")
	read(t, l, f)
	s := snapshot(t, l, j)
	if s.LastError == nil || s.LastError.Code != "DOWNLOAD_TIMEOUT" || s.LastError.Resource != j.members[0] || s.LastError.Context["proxy"] != "eu#1" || s.ResourcesFailed != 0 || s.Retries != 1 {
		t.Errorf("%+v", s)
	}
	j.happens(0, store.EventFailed, "DOWNLOAD_TIMEOUT")
	j.happens(1, store.EventFailed, "HANDLER_REFUSED")
	j.happens(0, "dead letter", "41")
	j.happens(1, "dead letter", "42")
	read(t, l, f)
	s = snapshot(t, l, j)
	if s.ResourcesFailed != 2 || s.NeverRetried != 1 || s.Status != ledger.Failed || s.DeadLetter != 42 || s.LastError.Code != "HANDLER_REFUSED" {
		t.Errorf("%+v", s)
	}
	if seq, err := l.DeadLetter(j.id, j.members[0]); seq != 41 || err != nil {
		t.Errorf("the dead letter of the first resource is %d, %v", seq, err)
	}
	j.happens(0, "manual retry")
	j.happens(1, "redrive")
	read(t, l, f)
	if s = snapshot(t, l, j); s.DeadLetter != 0 || s.ResourcesFailed != 0 || s.NeverRetried != 0 || s.ResourcesQueued != 3 {
		t.Errorf("after both were sent to the queue again: %+v", s)
	}
	if seq, _ := l.DeadLetter(j.id, j.members[0]); seq != 0 {
		t.Errorf("a resource that is queued points at dead letter %d", seq)
	}
}

// What fails now is counted by code, for each job and for each owner, until it is retried.
func TestFailuresAreCountedByCode(t *testing.T) {
	f, l := &feed{}, open(t)
	a, b, other := f.job("acme", 3), f.job("acme", 1), f.job("eve", 1)
	for _, m := range []int{0, 1} {
		a.happens(m, store.EventFailed, "DOWNLOAD_TIMEOUT")
	}
	a.happens(2, store.EventFailed, "HANDLER_REFUSED")
	b.happens(0, store.EventFailed, "DOWNLOAD_TIMEOUT")
	other.happens(0, store.EventFailed, "DOWNLOAD_TIMEOUT")
	a.happens(0, "redrive")
	a.happens(1, "redrive")
	a.happens(1, store.EventFailed, "UPLOAD_CONFLICT")
	read(t, l, f)
	if diff := cmp.Diff(map[string]int{"HANDLER_REFUSED": 1, "UPLOAD_CONFLICT": 1}, snapshot(t, l, a).Failures); diff != "" {
		t.Errorf("of the job:\n%s", diff)
	}
	for owner, want := range map[string]map[string]int{
		"acme": {"DOWNLOAD_TIMEOUT": 1, "HANDLER_REFUSED": 1, "UPLOAD_CONFLICT": 1}, "eve": {"DOWNLOAD_TIMEOUT": 1}, "ev": {},
		"": {"DOWNLOAD_TIMEOUT": 2, "HANDLER_REFUSED": 1, "UPLOAD_CONFLICT": 1},
	} {
		if got, err := l.Failures(owner); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%q: %v %v, want %v", owner, got, err, want)
		}
	}
	if n, err := l.Forget(begin.Add(time.Hour)); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if got, err := l.Failures(""); err != nil || cmp.Diff(map[string]int{"HANDLER_REFUSED": 1, "UPLOAD_CONFLICT": 1}, got) != "" {
		t.Errorf("after two jobs were forgotten: %v %v", got, err)
	}
}

// F6: a ledger that was lost is built again from the feed and equals the old one, whatever pages it was read in.
func TestARebuiltLedgerEqualsTheOld(t *testing.T) {
	f, l := &feed{}, open(t)
	var jobs []*job
	for n := range 20 {
		j := f.job("owner"+strconv.Itoa(n%3), 1+n%4)
		jobs = append(jobs, j)
		for m := range j.members {
			j.happens(m, store.EventProcessing)
			switch (n + m) % 5 {
			case 0:
				j.happens(m, store.EventComplete)
			case 1:
				j.happens(m, store.EventRetry, "DOWNLOAD_TIMEOUT")
				j.happens(m, store.EventProcessing)
				j.happens(m, store.EventFailed, "DOWNLOAD_TIMEOUT")
				j.happens(m, "dead letter", strconv.Itoa(n*10+m))
			case 2:
				j.happens(m, store.EventFailed, "HANDLER_REFUSED")
				j.happens(m, "dead letter", strconv.Itoa(n*10+m))
				j.happens(m, "redrive")
			case 3:
				j.happens(m, store.EventCancelled)
			}
		}
		if n%2 == 0 {
			read(t, l, f)
		}
	}
	read(t, l, f)
	all := func(l *ledger.Ledger) []ledger.JobSnapshot {
		list, err := l.Jobs("", holdfast.ID{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := all(l)
	if len(before) != len(jobs) {
		t.Fatalf("%d snapshots of %d jobs", len(before), len(jobs))
	}
	other := open(t)
	read(t, other, f)
	if diff := cmp.Diff(before, all(other)); diff != "" {
		t.Errorf("a new ledger differs:\n%s", diff)
	}
	if err := l.Clear(); err != nil {
		t.Fatal(err)
	}
	if len(all(l)) != 0 {
		t.Error("Clear left something")
	}
	read(t, l, f)
	if diff := cmp.Diff(before, all(l)); diff != "" {
		t.Errorf("the rebuilt ledger differs:\n%s", diff)
	}
}

// A busyFeed is a feed that is read by another step before each answer arrives.
type busyFeed struct {
	*feed
	between func()
}

// Feed returns the events after a number.
func (b *busyFeed) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	page, err := b.feed.Feed(ctx, after, limit)
	b.between()
	return page, err
}

func TestTwoStepsAtOnceCountEachEventOnce(t *testing.T) {
	f, l := &feed{}, open(t)
	j := f.job("ada", 1)
	for range 5 {
		j.happens(0, store.EventProcessing)
		j.happens(0, store.EventRetry, "DOWNLOAD_TIMEOUT")
	}
	if _, _, err := l.Step(t.Context(), &busyFeed{f, func() { read(t, l, f) }}); err != nil {
		t.Fatal(err)
	}
	if s := snapshot(t, l, j); s.Retries != 5 || s.Resources != 1 || s.ResourcesQueued != 1 {
		t.Errorf("%+v", s)
	}
}

func TestJobsAreListedByOwnerAndPage(t *testing.T) {
	f, l := &feed{}, open(t)
	var mine []holdfast.ID
	for n := range 10 {
		j := f.job([]string{"acme", "eve"}[n%2], 1)
		if n%2 == 0 {
			mine = append(mine, j.id)
		}
	}
	read(t, l, f)
	var got []holdfast.ID
	for before := (holdfast.ID{}); ; {
		page, err := l.Jobs("acme", before, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, s := range page {
			got = append(got, s.ID)
		}
		before = page[len(page)-1].ID
	}
	if len(got) != len(mine) || got[0] != mine[len(mine)-1] || got[len(got)-1] != mine[0] {
		t.Errorf("%v, want the reverse of %v", got, mine)
	}
}

func TestOldSnapshotsAreForgottenOnceTheirResourcesHaveEnded(t *testing.T) {
	f, l := &feed{}, open(t)
	ended, live := f.job("acme", 2), f.job("acme", 1)
	ended.happens(0, store.EventComplete)
	ended.happens(1, store.EventComplete)
	read(t, l, f)
	if n, err := l.Forget(begin.Add(time.Second)); n != 0 || err != nil {
		t.Errorf("before its time: %d, %v", n, err)
	}
	if n, err := l.Forget(begin.Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, found, _ := l.Job(ended.id); found {
		t.Error("it is still there")
	}
	snapshot(t, l, live)
}

func TestWhatRetentionDeletedUnreadIsReported(t *testing.T) {
	f, l := &feed{}, open(t)
	f.job("acme", 5)
	f.purged = 3
	if _, missed, err := l.Step(t.Context(), f); missed != 3 || err != nil {
		t.Errorf("%d, %v", missed, err)
	}
}

func TestALedgerIsOpenInOneProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	l, err := ledger.Open(file, ledger.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := ledger.Open(file, ledger.Config{}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v", err)
	}
}
