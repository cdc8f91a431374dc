//go:build unix

package chaos

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store"
)

// Bugs of other job queues that need real processes to test. The rows are those of reliability.md §2.

// A fixture is a store with worker processes.
type fixture struct {
	t     *testing.T
	store store.Store
	fleet *fleet
}

// eventually is the time limit of waits, for a machine that may be very busy.
const eventually = 2 * time.Minute

func newFixture(t *testing.T, address string, lease time.Duration) *fixture {
	t.Helper()
	s, err := openWithRetry(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{command: []string{os.Args[0], asChild}, spec: childSpec{Store: address, Dir: t.TempDir(), Lease: lease}}
	t.Cleanup(func() {
		f.killAll("")
		s.Close()
	})
	return &fixture{t: t, store: s, fleet: f}
}

func (s *fixture) startWorker() *process {
	s.t.Helper()
	p, err := s.fleet.spawn(roleWorker)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *fixture) enqueue(do script, options ...func(*holdfast.Draft)) holdfast.ID {
	s.t.Helper()
	receipt, err := holdfast.Enqueue(s.t.Context(), s.store, do.args(), options...)
	if err != nil {
		s.t.Fatal(err)
	}
	return receipt.ID
}

// starts returns the journal lines of the starts of a job so far.
func (s *fixture) starts(id holdfast.ID) []line {
	s.t.Helper()
	lines, err := readJournals(s.fleet.spec.Dir, len(s.fleet.all))
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(lines, func(l line) bool { return l.Saw != sawStart || l.Job != id })
}

// waitUntil waits until a condition is true.
func (s *fixture) waitUntil(what string, happened func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(eventually); !happened(); sleep(s.t.Context(), 10*time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("timed out waiting: %s\n%s", what, strings.Join(s.fleet.unexpectedExits(), "\n"))
		}
	}
}

func (s *fixture) waitEnded(id holdfast.ID) holdfast.Job {
	s.t.Helper()
	var job holdfast.Job
	s.waitUntil("job "+id.String()+" ends", func() bool {
		var err error
		job, err = s.store.Job(s.t.Context(), id)
		return err == nil && job.State.Terminal()
	})
	return job
}

func (s *fixture) checkIntegrity() {
	s.t.Helper()
	if err := checkStore(s.t.Context(), s.store, nil); err != nil {
		s.t.Error(err)
	}
}

func sqliteFile(t *testing.T) string { return filepath.Join(t.TempDir(), "jobs.db") }

// Rows 3, 4, 27, 36, 45, 52, 64: river#1258, river#682, asynq#1015, sidekiq#5540, faktory#409, oban#424, solid_queue#422.
func TestAJobOfAKilledWorkerRunsAgainSoonAndIsChargedNoFailureOnSQLite(t *testing.T) {
	runsAgainSoon(t, sqliteFile(t))
}

func TestAJobOfAKilledWorkerRunsAgainSoonAndIsChargedNoFailureOnPostgreSQL(t *testing.T) {
	runsAgainSoon(t, pgtest.Database(t))
}

func runsAgainSoon(t *testing.T, address string) {
	s := newFixture(t, address, 5*time.Second)
	first := s.startWorker()
	id := s.enqueue(script{Do: doWait}, func(d *holdfast.Draft) { d.MaxAttempts, d.UniqueKey = 1, "one" })
	s.waitUntil("the first start", func() bool { return len(s.starts(id)) == 1 })
	s.startWorker()
	killed := time.Now()
	first.asked = true
	first.signal(sigKill)
	s.waitUntil("the second start", func() bool { return len(s.starts(id)) == 2 })
	took := time.Duration(s.starts(id)[1].From - killed.UnixNano())
	t.Logf("with a lease of 5 s the job ran again %v after the kill", took.Round(time.Millisecond))
	if took > 30*time.Second {
		t.Errorf("%v is too long", took)
	}
	job := s.waitEnded(id)
	if job.State != holdfast.Complete || job.Crashes != 1 || job.Failures != 0 {
		t.Errorf("it is %s after %d crashes and %d failures; want complete after one crash and no failure", job.State, job.Crashes, job.Failures)
	}
	if again := s.enqueue(script{Do: doNothing}, func(d *holdfast.Draft) { d.UniqueKey = "one" }); again == id {
		t.Errorf("the key of a job that ended is still held")
	}
	s.checkIntegrity()
}

// Rows 36 and 64, sidekiq#4937, #4635: a rolling restart orphans nothing and spends nothing.
func TestRollingRestartsSpendNothing(t *testing.T) {
	s := newFixture(t, sqliteFile(t), 10*time.Second)
	var ids []holdfast.ID
	for range 150 {
		ids = append(ids, s.enqueue(script{Do: doSleep, For: 40 * time.Millisecond}))
	}
	old := s.startWorker()
	for range 6 {
		seen := len(ids)
		s.waitUntil("the next worker has begun", func() bool {
			counts, err := s.store.Counts(t.Context())
			left := 0
			for _, n := range counts {
				if !n.State.Terminal() {
					left += n.Jobs
				}
			}
			begun := err == nil && (left < seen || left == 0)
			seen = min(seen, left)
			return begun
		})
		next := s.startWorker()
		old.asked = true
		old.signal(sigTerm)
		<-old.gone
		old = next
	}
	for _, id := range ids {
		if job := s.waitEnded(id); job.State != holdfast.Complete || job.Failures+job.Crashes > 0 {
			t.Errorf("job %s is %s after %d failures and %d crashes", id, job.State, job.Failures, job.Crashes)
		}
	}
	s.checkIntegrity()
}

// Rows 8, 41, 42, 60: river PR#1251, sidekiq#3684, sidekiq#2028, good_job#90: a database that crashes and comes back takes no
// worker's loops with it, and a running job is not started a second time.
func TestADatabaseCrashTakesNoWorkerAlong(t *testing.T) {
	server, err := pgtest.Start("", pgtest.Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	address, err := server.Create("crash")
	if err != nil {
		t.Fatal(err)
	}
	s := newFixture(t, address, 30*time.Second)
	p := s.startWorker()
	long := s.enqueue(script{Do: doSleep, For: 2 * time.Second})
	s.waitUntil("the job has started", func() bool { return len(s.starts(long)) == 1 })
	if err := server.Restart(true); err != nil {
		t.Fatal(err)
	}
	if job := s.waitEnded(long); job.State != holdfast.Complete || len(s.starts(long)) != 1 {
		t.Errorf("it is %s after %d starts; want complete after one", job.State, len(s.starts(long)))
	}
	var next holdfast.ID
	s.waitUntil("the store takes jobs again", func() bool {
		receipt, err := holdfast.Enqueue(t.Context(), s.store, script{Do: doNothing})
		next = receipt.ID
		return err == nil
	})
	s.waitEnded(next)
	if !p.alive() {
		t.Errorf("the worker ended: %v", s.fleet.unexpectedExits())
	}
	s.checkIntegrity()
}

// Row 54: oban#493, #832, #1300; graphile#541; pg-boss#850; good_job#303: a wake-up connection that is cut costs one poll.
func TestACutWakeUpLineCostsOnePoll(t *testing.T) {
	address := pgtest.Database(t)
	s := newFixture(t, address, 30*time.Second)
	s.startWorker()
	s.waitEnded(s.enqueue(script{Do: doNothing}))
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	for range 5 {
		_, err := c.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%'`)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Now()
		id := s.enqueue(script{Do: doNothing})
		s.waitUntil("it starts", func() bool { return len(s.starts(id)) > 0 })
		t.Logf("started %v after it was enqueued", time.Duration(s.starts(id)[0].From-from.UnixNano()).Round(time.Millisecond))
	}
}

// Rows 7, 24, 44: river PR#1324, asynq#1140, faktory#417: rows damaged by hand fail alone; the process starts and the
// other jobs run.
func TestDamagedRowsFailAlone(t *testing.T) {
	path := sqliteFile(t)
	s := newFixture(t, path, 5*time.Second)
	damage := []string{
		`UPDATE holdfast_job SET args = '{broken' WHERE id = $1`,
		`UPDATE holdfast_job SET args = '"' || hex(zeroblob(5000000)) || '"' WHERE id = $1`,
		`UPDATE holdfast_job SET args = '"not a script"' WHERE id = $1`,
		`UPDATE holdfast_job SET kind = '' WHERE id = $1`,
	}
	var bad []holdfast.ID
	for range damage {
		bad = append(bad, s.enqueue(script{Do: doNothing}))
	}
	good := s.enqueue(script{Do: doNothing}, func(d *holdfast.Draft) { d.Priority = 9 })
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	c.SetBusyTimeout(eventually)
	for i, statement := range damage {
		if err := sqlitex.Execute(c, statement, &sqlitex.ExecOptions{Args: []any{bad[i][:]}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.startWorker()
	if job := s.waitEnded(good); job.State != holdfast.Complete {
		t.Errorf("the good job is %s", job.State)
	}
	for i, id := range bad {
		if job := s.waitEnded(id); job.State != holdfast.Failed {
			t.Errorf("after %q the job is %s; want failed", damage[i], job.State)
		}
	}
	findings, err := s.store.CheckIntegrity(t.Context())
	if err != nil || len(findings) == 0 {
		t.Errorf("the integrity check does not find the damage: %v", err)
	}
}
