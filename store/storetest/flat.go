package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A BlockMeter counts the blocks of a database (PostgreSQL) or the pages of a file (SQLite) that a store touches, in memory or on disk.
type BlockMeter struct {
	// Run opens a store, runs work on it, closes it and returns the number of blocks that it touched.
	Run func(work func(store.Store)) int
	// Load inserts jobs with SQL.
	Load func(Load)
	// Analyze makes the database collect statistics, after a vacuum if it has one, as autovacuum does in production.
	Analyze func()
	// Vacuum removes dead rows from tables that Load does not fill, so that one round does not pay for the round before it. It may be nil.
	Vacuum func()
	// Plans checks the plans of all statements with the present rows and statistics. It may be nil.
	Plans func(t *testing.T)
	// Patience is how long Await has to wait until the store has certainly checked for missed wake-ups.
	Patience time.Duration
}

// A Load is jobs in bulk: Rows each of ready, future, complete and failed jobs, and Held jobs that are ready in the queue "held". Their ids begin
// with Prefix and sort behind those of enqueued jobs. Ready and held jobs are spread over Lanes lanes each: with one lane, ready jobs are in the
// queue "settled" as kind "mail"; with more, they are in the queue "backlog" and every lane has an owner.
type Load struct {
	Rows, Held, Lanes int
	Prefix            string // two hex digits
}

// What other jobs may cost: a fifth more, and a few blocks whatever the operation. The constant covers page splits and the last, partly filled pages
// of tables.
const (
	flatFactor = 1.2
	flatBlocks = 20
)

// flatBase is how many rows of each sort there are at the beginning. The base is not an empty store, because its index trees have fewer levels: with
// these rows, trees have as many levels as with all.
const flatBase = 80_000

// Flat checks that no operation of a worker and no duty costs more because other jobs are ready, held, retained, scheduled or failed, in one lane or
// in a thousand. It counts blocks, so the speed of the machine does not matter. Each load is measured twice: with statistics from before it, and
// after the database has collected new ones. In the first load all ready jobs are in a single lane: only then a planner takes the lane for not
// selective (PostgreSQL reads the whole index for an EXISTS), or takes a search of all lanes for as fast as one (SQLite's skip-scan). The thousand
// lanes are added under these statistics. Each load adds so many rows of each sort.
func Flat(t *testing.T, m *BlockMeter, rows int) {
	f := &flat{TB: t, BlockMeter: m}
	m.Run(f.settleDown)
	m.Load(Load{Rows: flatBase, Lanes: 1, Prefix: "fd"})
	m.Analyze()
	f.measure() // the first round creates lanes, and tables have no free space yet
	m.Analyze()
	base := f.measure()
	for _, crowd := range []struct {
		name string
		Load
	}{
		{"in one lane", Load{Rows: rows, Lanes: 1, Prefix: "fe"}},
		{"in a thousand lanes each", Load{Rows: rows, Held: rows, Lanes: 1000, Prefix: "ff"}},
		{"held in one lane", Load{Held: rows, Lanes: 1, Prefix: "fc"}},
	} {
		m.Load(crowd.Load)
		t.Run(crowd.name+", statistics from before", func(t *testing.T) { f.compare(t, base) })
		m.Analyze()
		t.Run(crowd.name+", statistics collected", func(t *testing.T) { f.compare(t, base) })
	}
}

// flat is a worker whose operations are measured.
type flat struct {
	testing.TB
	*BlockMeter
	store store.Store
	held  map[string][]store.Lease
	jobs  map[string][]holdfast.ID
}

// compare measures every operation with other jobs and compares it with the base. Other activity of the database only adds blocks, so an operation
// that is too expensive is measured again, and the cheapest round counts.
func (f *flat) compare(t *testing.T, base []int) {
	whole := f.TB
	f.TB = t
	defer func() { f.TB = whole }()
	got := f.measure()
	for range 2 {
		if firstAbove(base, got) < 0 {
			break
		}
		for i, again := range f.measure() {
			got[i] = min(got[i], again)
		}
	}
	for i, op := range flatOperations {
		t.Logf("%-40s %6d blocks, %6d without", op.name, got[i], base[i])
		if got[i] > allowed(base[i]) {
			t.Errorf("%s touches %d blocks beside other jobs and %d without, and %d are allowed: find the statement that reads more than it needs", op.name, got[i], base[i], allowed(base[i]))
		}
	}
	if f.Plans != nil {
		t.Run("plans", f.Plans)
	}
}

func allowed(base int) int { return int(flatFactor*float64(base)) + flatBlocks }

// firstAbove is the first operation that costs more than is allowed, or -1.
func firstAbove(base, got []int) int {
	for i := range base {
		if got[i] > allowed(base[i]) {
			return i
		}
	}
	return -1
}

// measure runs every operation once, each on a store of its own, and returns the blocks that each touched. It prepares what the operations need
// before, and removes what they leave.
func (f *flat) measure() []int {
	f.held, f.jobs = map[string][]store.Lease{}, map[string][]holdfast.ID{}
	f.Run(func(s store.Store) {
		f.store = s
		for _, op := range flatOperations {
			if op.prepare != nil {
				op.prepare(f)
			}
		}
		f.follow()
	})
	if f.Vacuum != nil {
		f.Vacuum()
	}
	blocks := make([]int, len(flatOperations))
	for i, op := range flatOperations {
		blocks[i] = f.Run(func(s store.Store) { f.store = s; op.run(f) })
	}
	f.Run(func(s store.Store) { f.store = s; f.clear() })
	return blocks
}

// follow numbers the feed and advances groups to its end.
func (f *flat) follow() {
	for _, duty := range []func(context.Context, int) (int, error){f.store.Sequence, f.store.AdvanceGroups} {
		for n := 1; n > 0; {
			var err error
			n, err = duty(context.Background(), 10_000)
			f.ok(err)
		}
	}
}

// settleDown enqueues the jobs that are ahead of a backlog, and places the hold on the queue "held". Half of the jobs fail and are redriven, so that
// the index trees of failures and interventions have two levels from the beginning.
func (f *flat) settleDown(s store.Store) {
	f.store, f.jobs, f.held = s, map[string][]holdfast.ID{}, map[string][]store.Lease{}
	for range 4 {
		f.put("settled", 500)
		f.held["settled"] = f.claim("settled", 500, store.Claim{})
		f.settle("settled", broken)
		_, err := s.Redrive(context.Background(), store.Redrive{ID: holdfast.NewID(), Jobs: f.jobs["settled"], Actor: "ada", Reason: "mended"})
		f.ok(err)
		delete(f.jobs, "settled")
	}
	f.put("settled", 2000)
	f.follow()
	f.hold(store.Hold{Queue: "held"})
}
