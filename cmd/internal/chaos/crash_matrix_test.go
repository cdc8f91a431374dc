//go:build unix

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// The crash matrix: a process runs one scenario with every operation of a store and exits at the n-th boundary between two
// statements, for n = 1, 2, 3 until the scenario reaches its end. After each exit the store is opened again and drained, the
// integrity check runs, and everything that was acknowledged must be in the store. (asynq#764, #274; sidekiq PR#843;
// reliability.md §2 rows 31 and 33.)

// A crashPoint configures one process of the matrix: its store, and the boundary at which it exits.
type crashPoint struct {
	SQLite   string `json:"sqlite,omitempty"`
	Postgres string `json:"postgres,omitempty"`
	Journal  string `json:"journal"`
	Exit     int    `json:"exit"`
	Bulk     int    `json:"crowd"` // number of jobs in the bulk enqueue: enough for COPY, or few where each is a statement
}

// exitScenarioEnd is the exit code of a scenario that reached its end.
const exitScenarioEnd = 9

func (m crashPoint) open(ctx context.Context, trace func(string)) (store.Store, error) {
	if m.SQLite != "" {
		return sqlite.Open(ctx, sqlite.Config{Path: m.SQLite, Trace: trace})
	}
	return postgres.Open(ctx, postgres.Config{URL: m.Postgres, Trace: trace})
}

func TestAProcessMayExitBetweenAnyTwoStatementsOnSQLite(t *testing.T) {
	everyBoundary(t, 1, func(t *testing.T) func(int) crashPoint {
		dir := t.TempDir()
		return func(n int) crashPoint {
			at := filepath.Join(dir, fmt.Sprint(n))
			return crashPoint{SQLite: at + ".db", Journal: at + ".journal", Exit: n, Bulk: 4}
		}
	})
}

// In `make test` every third boundary is tested: the SQLite test has all boundaries of the same scenario.
func TestAProcessMayExitBetweenAnyTwoStatementsOnPostgreSQL(t *testing.T) {
	everyBoundary(t, soak.Pick("PostgreSQL: a process exits at every n-th boundary between statements, n", 3, 1), func(t *testing.T) func(int) crashPoint {
		dir, url := t.TempDir(), pgtest.Database(t)
		return func(n int) crashPoint {
			truncateTables(t, url)
			return crashPoint{Postgres: url, Journal: filepath.Join(dir, fmt.Sprint(n)), Exit: n, Bulk: 120}
		}
	})
}

// everyBoundary tests every n-th boundary, a few in parallel: each is a process that mostly waits.
func everyBoundary(t *testing.T, nth int, prepare func(*testing.T) func(int) crashPoint) {
	const lanes = 3
	for lane := range lanes {
		t.Run(fmt.Sprint("from boundary ", 1+lane*nth), func(t *testing.T) {
			t.Parallel()
			at, n := prepare(t), 1+lane*nth
			for !crashAt(t, at(n)) {
				n += lanes * nth
			}
			t.Logf("the scenario has fewer than %d boundaries", n)
		})
	}
}

// crashAt runs the scenario up to one boundary and checks the store.
func crashAt(t *testing.T, m crashPoint) (over bool) {
	t.Helper()
	text, _ := json.Marshal(m)
	cmd := exec.CommandContext(t.Context(), os.Args[0], asMatrix, string(text))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitKilled && exit.ExitCode() != exitScenarioEnd {
		t.Fatalf("boundary %d: the scenario failed: %v\n%s", m.Exit, err, out)
	}
	if m.Postgres != "" {
		awaitDisconnect(t, m.Postgres)
	}
	s, err := m.open(t.Context(), nil)
	if err != nil {
		t.Fatalf("boundary %d (%s): the store does not open: %v", m.Exit, lastLine(out), err)
	}
	defer s.Close()
	if broken := checkAfterCrash(t.Context(), s, m.Journal); broken != nil {
		t.Errorf("boundary %d (%s): %v", m.Exit, lastLine(out), broken)
	}
	return exit.ExitCode() == exitScenarioEnd
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// checkAfterCrash drains the store, runs the integrity check, and looks for everything that was acknowledged.
func checkAfterCrash(ctx context.Context, s store.Store, path string) error {
	if err := drain(ctx, s); err != nil {
		return err
	}
	findings, err := s.CheckIntegrity(ctx)
	if err != nil || len(findings) > 0 {
		return fmt.Errorf("the integrity check: %w %v", err, findings)
	}
	if err := errors.Join(checkFeed(ctx, s), checkTrends(ctx, s)); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil // the process exited before anything was acknowledged
	}
	defer f.Close()
	var broken []error
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			return fmt.Errorf("cannot read the journal: %w", err)
		}
		broken = append(broken, checkAcknowledged(ctx, s, l))
	}
	return errors.Join(broken...)
}

// checkFeed compares the feed with the jobs: each has one queued event, and one event of its end with the token of its last attempt. A process that exited
// before it registered its listener has no events.
func checkFeed(ctx context.Context, s store.Store) error {
	for n := 1; n > 0; {
		var err error
		if n, err = s.Sequence(ctx, 1000); err != nil {
			return err
		}
	}
	type end struct {
		job   holdfast.ID
		token int
		name  string
	}
	queued, ends := map[holdfast.ID]int{}, map[end]int{}
	for after := int64(0); ; {
		page, err := s.Feed(ctx, after, 1000)
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			if ends[end{e.Job, e.Token, e.Name}]++; e.Name == store.EventQueued {
				queued[e.Job]++
			}
		}
		if after = page.Next; len(page.Events) == 0 {
			break
		}
	}
	jobs, _, err := s.Jobs(ctx, store.Filter{Limit: 200})
	if err != nil || len(queued) == 0 && len(jobs) == 0 {
		return err
	}
	var broken []error
	for _, job := range jobs {
		name := string(job.State)
		if job.LastFailure != nil && job.LastFailure.Code == "JOB_EXPIRED" {
			name = store.EventExpired
		}
		if queued[job.ID] != 1 || ends[end{job.ID, job.Token, name}] != 1 {
			broken = append(broken, fmt.Errorf("job %s is %s with token %d, and the feed has %d queued events and %d events %s of it",
				job.ID, job.State, job.Token, queued[job.ID], ends[end{job.ID, job.Token, name}], name))
		}
	}
	return errors.Join(broken...)
}

// checkTrends compares the trends with jobs and attempts: each outcome is counted once, and none that was rolled back.
func checkTrends(ctx context.Context, s store.Store) error {
	jobs, _, err := s.Jobs(ctx, store.Filter{Limit: 200})
	if err != nil {
		return err
	}
	var proved, counted store.Trend
	for _, job := range jobs {
		if job.State == holdfast.Complete {
			proved.Complete++ // the scenario retries no complete job
		}
		if job.State == holdfast.Complete && job.Token == 1 {
			continue
		}
		h, err := s.History(ctx, job.ID)
		if err != nil {
			return err
		}
		for _, a := range h.Attempts {
			switch {
			case a.Late:
			case a.To == holdfast.Failed:
				proved.Failed++
			case a.To == holdfast.Cancelled:
				proved.Cancelled++
			case a.Charge == store.ChargeFailure || a.Charge == store.ChargeCrash:
				proved.Retried++
			}
		}
	}
	trends, err := s.Trends(ctx, 24*time.Hour, 0)
	for _, t := range trends {
		counted.Complete, counted.Failed = counted.Complete+t.Complete, counted.Failed+t.Failed
		counted.Retried, counted.Cancelled = counted.Retried+t.Retried, counted.Cancelled+t.Cancelled
	}
	if err == nil && proved != counted {
		err = fmt.Errorf("jobs and attempts add up to %+v, and the trends to %+v", proved, counted)
	}
	return err
}

// checkAcknowledged compares one acknowledgement with the store.
func checkAcknowledged(ctx context.Context, s store.Store, l line) error {
	h, err := s.History(ctx, l.Job)
	if err != nil {
		return fmt.Errorf("job %s was acknowledged (%s): %w", l.Job, l.Saw, err)
	}
	ok := true
	switch {
	case l.Saw == sawRetry:
		ok = h.Job.Generation > 1
	case l.Saw == sawEdit:
		ok = h.Job.Priority == -3 && strings.Contains(string(h.Job.Args), "two")
	case l.Saw == sawCancel, l.Saw == sawAnswer && l.To == holdfast.Cancelled:
		ok = h.Job.State == holdfast.Cancelled
	case l.Saw == sawAnswer && l.To == holdfast.Complete:
		ok = h.Job.State == holdfast.Complete && h.Job.Token == l.Token
	case l.Saw == sawAnswer:
		ok = false
		for _, a := range h.Attempts {
			ok = ok || a.Token == l.Token && a.To == l.To && !a.Late
		}
	}
	if !ok {
		return fmt.Errorf("job %s: %s to %q with token %d was acknowledged, and the store shows %s with token %d", l.Job, l.Saw, l.To, l.Token, h.Job.State, h.Job.Token)
	}
	return nil
}

// drain promotes, reclaims, expires, claims and settles, as workers do, until every job has ended.
func drain(ctx context.Context, s store.Store) error {
	claim := store.Claim{Worker: "drain", Queues: []string{holdfast.DefaultQueue}, Limit: 500, Start: 500, Lease: time.Minute}
	for deadline := time.Now().Add(eventually); time.Now().Before(deadline); sleep(ctx, time.Millisecond) {
		_, err := s.Promote(ctx, 500)
		lost, e1 := s.Reclaim(ctx, claim)
		expired, e2 := s.Expire(ctx, claim)
		due, e3 := s.Claim(ctx, claim)
		if err := errors.Join(err, e1, e2, e3); err != nil {
			return err
		}
		var settlements []store.Settlement
		for _, l := range append(append(lost, expired...), due...) {
			settlements = append(settlements, store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete})
		}
		answers, err := s.Settle(ctx, settlements)
		if err := errors.Join(append(answers, err)...); err != nil {
			return err
		}
		counts, err := s.Counts(ctx)
		if err != nil {
			return err
		}
		open := false
		for _, n := range counts {
			open = open || !n.State.Terminal()
		}
		if !open {
			return nil
		}
	}
	return errors.New("some jobs have not ended")
}

// awaitDisconnect waits until the database has closed the connections of the process: statements that it had sent are then finished.
func awaitDisconnect(t *testing.T, url string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for others := 1; others > 0; sleep(t.Context(), time.Millisecond) {
		query := `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
		if err := c.QueryRow(t.Context(), query).Scan(&others); err != nil {
			t.Fatal(err)
		}
	}
}

// truncateTables empties every table except the record of migrations.
func truncateTables(t *testing.T, url string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	_, err = c.Exec(t.Context(), `DO $$ DECLARE tables text; BEGIN
		SELECT string_agg(quote_ident(tablename), ', ') INTO tables FROM pg_tables
		 WHERE schemaname = current_schema() AND tablename LIKE 'holdfast\_%' AND tablename <> 'holdfast_migration';
		IF tables IS NOT NULL THEN EXECUTE 'TRUNCATE ' || tables; INSERT INTO holdfast_feed (one) VALUES (1); END IF; END $$`)
	if err != nil {
		t.Fatal(err)
	}
}
