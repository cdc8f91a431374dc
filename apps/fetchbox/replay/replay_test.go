package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

const (
	kind     = "test.fetch"
	patience = 2 * time.Minute
)

// A scene is a store with failed resources, their dead letters in a stream, and an engine that works on them again.
type scene struct {
	*testing.T
	store   store.Store
	stream  *deadletter.Stream
	outbox  *deadletter.Outbox
	replays *replay.Runner
	cured   atomic.Bool // resources can be fetched by now

	mu   sync.Mutex
	runs map[holdfast.ID]int
}

func newScene(t *testing.T) *scene {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Apply(t.Context(), store.Change{Listen: []store.Listener{{Name: "test", Events: []string{"*"}}}}); err != nil {
		t.Fatal(err)
	}
	server, err := deadletter.StartServer(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	stream, err := deadletter.Connect("", 0, server.Option())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Close)
	s := &scene{T: t, store: db, stream: stream, runs: map[holdfast.ID]int{}}
	s.outbox = &deadletter.Outbox{Store: db, Stream: stream, Kind: kind}
	s.replays = &replay.Runner{Store: db, Stream: stream}
	s.works()
	return s
}

// works runs an engine with the duties of FetchBox until the test ends.
func (s *scene) works() {
	s.Helper()
	e, err := engine.New(s.store, engine.Config{
		Queues: []string{"test"}, Taxonomy: code.Taxonomy(), Log: slog.New(slog.DiscardHandler), Poll: 20 * time.Millisecond,
		Duties: []engine.Duty{{Name: "dead-letters", Interval: 20 * time.Millisecond, Run: s.outbox.Step}, {Name: "replays", Interval: 50 * time.Millisecond, Run: s.replays.Step}},
	})
	if err != nil {
		s.Fatal(err)
	}
	engine.HandleRaw(e, kind, func(_ context.Context, job *engine.Raw) error {
		s.mu.Lock()
		s.runs[job.ID]++
		s.mu.Unlock()
		if s.cured.Load() {
			return nil
		}
		var args struct{ Code string }
		if err := json.Unmarshal(job.Args, &args); err != nil {
			return err
		}
		return failure.NeverRetry(failure.WithCode(errors.New("it failed"), args.Code))
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
		if findings, err := s.store.CheckIntegrity(context.Background()); len(findings) > 0 || err != nil {
			s.Errorf("the store is not well: %v %v", findings, err)
		}
	})
}

func (s *scene) until(what string, yes func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !yes(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("timed out waiting until %s", what)
		}
	}
}

// fails makes dead letters: of each code so many, on a host of its own.
func (s *scene) fails(each int, codes ...string) (ids []holdfast.ID) {
	s.Helper()
	group, err := s.store.CreateGroup(s.Context(), holdfast.Group{Owner: "acme"})
	if err != nil {
		s.Fatal(err)
	}
	var drafts []holdfast.Draft
	for _, name := range codes {
		for range each {
			args := json.RawMessage(fmt.Sprintf(`{"url":"https://%s.example/a","code":%q}`, name[:3], name))
			drafts = append(drafts, holdfast.Draft{ID: holdfast.NewID(), Kind: kind, Queue: "test", Owner: "acme", Group: group.ID, Args: args})
			ids = append(ids, drafts[len(drafts)-1].ID)
		}
	}
	before := s.last()
	if _, err := s.store.Enqueue(s.Context(), drafts); err != nil {
		s.Fatal(err)
	}
	s.until("all are dead letters", func() bool { return s.last() == before+uint64(len(ids)) })
	return ids
}

func (s *scene) last() uint64 {
	s.Helper()
	at, err := s.stream.Position(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return at.Last
}

// replayed starts a replay and waits until it has ended or stopped.
func (s *scene) replayed(spec replay.Spec) replay.Progress {
	s.Helper()
	spec.Actor = "ann"
	p, err := s.replays.Start(s.Context(), spec)
	if err != nil {
		s.Fatal(err)
	}
	s.until("the replay is over", func() bool {
		p = s.replay(p.ID)
		return p.State != redrive.Running
	})
	return p
}

func (s *scene) replay(id holdfast.ID) (p replay.Progress) {
	s.Helper()
	list, err := s.replays.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, p := range list {
		if p.ID == id {
			return p
		}
	}
	s.Fatalf("there is no replay %s", id)
	return p
}

// states counts the resources by state.
func (s *scene) states(ids []holdfast.ID) map[holdfast.State]int {
	s.Helper()
	counts := map[holdfast.State]int{}
	for _, id := range ids {
		job, err := s.store.Job(s.Context(), id)
		if err != nil {
			s.Fatal(err)
		}
		counts[job.State]++
	}
	return counts
}

// F7: replay by sequence, code, host and time; a dry run changes nothing.
func TestAReplayTakesWhatItsFilterSelects(t *testing.T) {
	for name, filter := range map[string]replay.Filter{
		"code": {Code: "UPLOAD_TIMEOUT"}, "stage": {Code: "UPLOAD_"}, "host": {Host: "upl.EXAMPLE"}, "numbers": {From: 4, To: 6}, "time": {Code: "UPLOAD_", Since: time.Now().Add(-time.Hour)}, "owner": {Owner: "acme", From: 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			others := s.fails(3, "DOWNLOAD_TIMEOUT")
			wanted := s.fails(3, "UPLOAD_TIMEOUT")
			s.cured.Store(true)
			preview, err := s.replays.Preview(t.Context(), replay.Spec{Filter: filter, Actor: "ann"})
			if err != nil || preview.Letters != 3 || preview.Eligible != 3 || preview.Codes["UPLOAD_TIMEOUT"] != 3 || preview.Hosts["upl.example"] != 3 {
				t.Errorf("%+v, %v", preview, err)
			}
			if got := s.states(append(others, wanted...)); got[holdfast.Failed] != 6 {
				t.Errorf("after the dry run: %v", got)
			}
			p := s.replayed(replay.Spec{Filter: filter, PerSecond: 1000})
			if p.State != redrive.Done || p.Counts.Complete != 3 {
				t.Errorf("%s %s %+v", p.State, p.Why, p.Counts)
			}
			if got := s.states(wanted); got[holdfast.Complete] != 3 {
				t.Errorf("what was selected: %v", got)
			}
			if got := s.states(others); got[holdfast.Failed] != 3 {
				t.Errorf("the others: %v", got)
			}
		})
	}
}

// F7: each dead letter is replayed at most once, also by several replays at once and after a failure again.
func TestEachDeadLetterIsReplayedAtMostOnce(t *testing.T) {
	s := newScene(t)
	ids := s.fails(soak.Pick("replayed dead letters", 200, 1000), "DOWNLOAD_TIMEOUT")
	s.cured.Store(true)
	var done sync.WaitGroup
	var taken atomic.Int64
	for range 3 {
		done.Go(func() { taken.Add(int64(s.replayed(replay.Spec{PerSecond: 1000}).Counts.Taken)) })
	}
	done.Wait()
	if got := s.states(ids); got[holdfast.Complete] != len(ids) {
		t.Errorf("%v", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.runs[id] != 2 {
			t.Errorf("%s ran %d times: once, and once by a replay", id, s.runs[id])
		}
	}
	if int(taken.Load()) != len(ids) {
		t.Errorf("%d taken of %d", taken.Load(), len(ids))
	}
}

func TestWhatFailsAgainIsNotReplayedByTheSameReplay(t *testing.T) {
	s := newScene(t)
	ids := s.fails(5, "DOWNLOAD_TIMEOUT")
	p := s.replayed(replay.Spec{PerSecond: 1000})
	if p.State != redrive.Done || p.Counts.Failed != 5 || p.Counts.Taken != 5 {
		t.Errorf("%s %s %+v", p.State, p.Why, p.Counts)
	}
	s.until("the new dead letters are there", func() bool { return s.last() == 10 })
	// The first five letters are of generation 1: their resources have newer ones.
	if preview, err := s.replays.Preview(t.Context(), replay.Spec{Filter: replay.Filter{To: 5}, Actor: "ann"}); err != nil || preview.Letters != 5 || preview.Eligible != 0 {
		t.Errorf("%+v, %v", preview, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.runs[id] != 2 {
			t.Errorf("%s ran %d times", id, s.runs[id])
		}
	}
}

func TestABadCanaryStopsAReplay(t *testing.T) {
	s := newScene(t)
	ids := s.fails(30, "DOWNLOAD_TIMEOUT")
	p := s.replayed(replay.Spec{PerSecond: 1000, Canary: 3})
	if p.State != redrive.Stopped || p.Counts.Taken != 3 {
		t.Errorf("%s %s %+v", p.State, p.Why, p.Counts)
	}
	s.cured.Store(true)
	if p = s.replayed(replay.Spec{PerSecond: 1000, Canary: 3}); p.State != redrive.Done || !p.Passed {
		t.Errorf("%s %s %+v", p.State, p.Why, p.Counts)
	}
	if got := s.states(ids); got[holdfast.Complete] != 30 {
		t.Errorf("%v", got)
	}
}

func TestAReplayCanBeCancelled(t *testing.T) {
	s := newScene(t)
	s.fails(20, "DOWNLOAD_TIMEOUT")
	p, err := s.replays.Start(t.Context(), replay.Spec{PerSecond: 1, Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.replays.Cancel(t.Context(), p.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	if p = s.replay(p.ID); p.State != redrive.Cancelled {
		t.Errorf("%s", p.State)
	}
	if err := s.replays.Cancel(t.Context(), holdfast.NewID(), "ann"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestABadReplayIsRefused(t *testing.T) {
	s := newScene(t)
	for _, spec := range []replay.Spec{{}, {Actor: "ann", Canary: -1}, {Actor: "ann", PerSecond: 1e9}, {Actor: "ann", Filter: replay.Filter{From: 5, To: 4}}} {
		if _, err := s.replays.Start(t.Context(), spec); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

func TestAReplayOfAnEmptyStreamIsDoneAtOnce(t *testing.T) {
	s := newScene(t)
	if p := s.replayed(replay.Spec{}); p.State != redrive.Done {
		t.Errorf("%s %s", p.State, p.Why)
	}
}
