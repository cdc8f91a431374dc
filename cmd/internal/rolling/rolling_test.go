//go:build unix

package rolling

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestTwoReleasesShareAStoreWhileJobsFlow is a rolling deploy. The previous release works alone; this one joins and migrates the tables; a step that both do not
// know is applied, as by the release after this one; the old server is killed and started again on the newer tables; then it leaves.
func TestTwoReleasesShareAStoreWhileJobsFlow(t *testing.T) {
	old, current := releases(t)
	for name, address := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "jobs.db"), "postgres": pgtest.Database(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDeploy(t, address)
			d.roll(old, current)
			d.expectRefusal(old, current)
		})
	}
}

// roll performs the deploy, and checks how the jobs ended.
func (d *deploy) roll(old, current release) {
	first := d.serve(old)
	d.start()
	ended := make(chan struct{})
	var far sync.WaitGroup
	far.Go(func() { d.workFar(ended) })
	d.awaitWork("old")

	second := d.serve(current)
	d.awaitWork("old", "new")
	known := old.latest(d.T, d.address)
	d.applyNextStep(known)
	d.awaitWork("old", "new")

	d.occupy("old")
	d.live.remove(first)
	first.end(d.T, syscall.SIGKILL)
	d.awaitWork("new")
	third := d.serve(old)
	d.awaitWork("old", "new")

	d.live.remove(third)
	third.end(d.T, syscall.SIGTERM)
	if code := third.cmd.ProcessState.ExitCode(); code != 0 {
		d.Errorf("the old server stopped with %d:\n%s", code, third.log.String())
	}
	d.awaitWork("new")
	close(d.stop)
	d.work.Wait()
	d.insist(0, "DELETE /schedules/beat", nil, nil)
	d.awaitEnd()
	close(ended)
	far.Wait()
	d.expectOnce()
	d.expectBeats()
	d.live.remove(second)
	second.end(d.T, syscall.SIGTERM)
	for _, r := range []release{old, current} {
		if code, out := r.run("doctor", "--store", d.address); code != 0 || !strings.Contains(out, "healthy") {
			d.Errorf("doctor of the %s release: exit %d\n%s", r.name, code, out)
		}
	}
}

// awaitWork waits until servers of these releases have run more programs.
func (d *deploy) awaitWork(names ...string) {
	d.Helper()
	_, before := d.programRuns()
	waitUntil(d.T, fmt.Sprintf("programs run by %v", names), func() bool {
		_, now := d.programRuns()
		return !slices.ContainsFunc(names, func(name string) bool { return now[name] < before[name]+5 })
	})
}

// nextStep is an additive step: a table, and columns in the tables of the hot path. Neither release knows it.
const nextStep = `
	CREATE TABLE holdfast_made_up (n integer);
	ALTER TABLE holdfast_job ADD COLUMN made_up integer;
	ALTER TABLE holdfast_ready ADD COLUMN made_up integer NOT NULL DEFAULT 7;
	ALTER TABLE holdfast_later ADD COLUMN made_up integer NOT NULL DEFAULT 7;
	ALTER TABLE holdfast_batch ADD COLUMN made_up integer NOT NULL DEFAULT 7;
	ALTER TABLE holdfast_finished ADD COLUMN made_up integer NOT NULL DEFAULT 7;
	INSERT INTO holdfast_migration (version, at, needs) VALUES (1000, %s, %d);`

// applyNextStep applies the step to the tables in use, as a release would that needs a program of the previous release.
func (d *deploy) applyNextStep(needs int) {
	d.Helper()
	d.change(func(now string) string { return fmt.Sprintf(nextStep, now, needs) })
	for _, s := range d.live.all {
		if code, out := s.run("migrate", "--store", d.address); code != 0 || !strings.Contains(out, "version 1000: migrated by a newer release") {
			d.Errorf("migrate of the %s release: exit %d, %s", s.name, code, out)
		}
	}
}

// change changes the tables in one transaction. As in a real migration, it may collide with transactions of servers and is repeated then.
func (d *deploy) change(text func(now string) string) {
	d.Helper()
	apply := d.changeSQLite
	if strings.HasPrefix(d.address, "postgres") {
		apply = d.changePostgres
	}
	var err error
	for range 20 {
		if err = apply(text); err == nil {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	d.Fatal(err)
}

func (d *deploy) changeSQLite(text func(string) string) error {
	conn, err := sqlite.OpenConn(d.address, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetBusyTimeout(patience)
	return sqlitex.ExecuteScript(conn, text("0"), nil) // in a savepoint
}

func (d *deploy) changePostgres(text func(string) string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, text("now()"), pgx.QueryExecModeSimpleProtocol) // several statements are one transaction
	return err
}

// job is a job as the API shows it.
type job struct {
	ID                          holdfast.ID
	State                       holdfast.State
	Failures, Crashes, Releases int
	IdempotencyKey              string `json:"idempotency_key"`
}

// awaitEnd waits until every acknowledged job and every group has ended as it should.
func (d *deploy) awaitEnd() {
	d.Helper()
	for i, s := range d.jobs {
		var j job
		waitUntil(d.T, fmt.Sprintf("%s %s", s.what, s.id), func() bool {
			d.insist(i, "GET /jobs/"+s.id.String(), nil, &j)
			return j.State == holdfast.Complete || j.State == holdfast.Failed || j.State == holdfast.Cancelled || d.Failed()
		})
		if j.State != s.state {
			d.Errorf("%s %s is %s, want %s", s.what, s.id, j.State, s.state)
		}
	}
	for i, id := range d.groups {
		var g struct{ Group holdfast.Group }
		waitUntil(d.T, "group "+id.String(), func() bool {
			d.insist(i, "GET /groups/"+id.String(), nil, &g)
			return g.Group.State != "open" && g.Group.State != "processing" || d.Failed()
		})
		if g.Group.State != holdfast.GroupPartial || g.Group.Generation != 1 {
			d.Errorf("group %s is %s in generation %d, want partial in its first", id, g.Group.State, g.Group.Generation)
		}
	}
}

// expectOnce compares how often each job ran with what the store says of it. A job runs once, once more for each failure, and once more for each time that its
// worker was lost or returned it. Only the server that was killed may lose jobs.
func (d *deploy) expectOnce() {
	d.Helper()
	programs, byRelease := d.programRuns()
	crashes := 0
	for i, s := range d.jobs {
		var j job
		d.insist(i, "GET /jobs/"+s.id.String(), nil, &j)
		d.mu.Lock()
		ran := d.runs[s.id] + programs[s.id]
		d.mu.Unlock()
		most := j.Failures + j.Crashes + j.Releases
		if j.State == holdfast.Complete {
			most++
		}
		if ran < s.least || ran > most {
			d.Errorf("%s %s ran %d times, want %d to %d: %+v", s.what, s.id, ran, s.least, most, j)
		}
		crashes += j.Crashes
	}
	if crashes > slots+4 { // 4: a claim of a worker over HTTP whose answer was lost
		d.Errorf("%d jobs lost their worker; one server with %d slots was killed", crashes, slots)
	}
	d.Logf("%d jobs in %d groups and alone, %d of them lost their worker; programs were run by %v", len(d.jobs), len(d.groups), crashes, byRelease)
}

// expectBeats checks that each slot of the schedule made one job, whichever server made it, and that no slot is missing.
func (d *deploy) expectBeats() {
	d.Helper()
	var page struct{ Jobs []job }
	d.insist(0, "GET /jobs?queue=beats&limit=200", nil, &page)
	at := map[int64]bool{}
	for _, j := range page.Jobs {
		slot, err := time.Parse(time.RFC3339, strings.TrimPrefix(j.IdempotencyKey, "schedule/beat/"))
		ok(d, err)
		if at[slot.Unix()] {
			d.Errorf("slot %s made two jobs", slot)
		}
		at[slot.Unix()] = true
	}
	slots := slices.Sorted(maps.Keys(at))
	if len(slots) < 3 || len(page.Jobs) == 200 || slots[len(slots)-1]-slots[0] != int64(len(slots)-1) {
		d.Errorf("the schedule made a job at %v; wanted one in every second", slots)
	}
}

// expectRefusal records a step that only programs can use that know it, and expects that both releases refuse the tables in one line.
func (d *deploy) expectRefusal(old, current release) {
	d.change(func(now string) string {
		return fmt.Sprintf("INSERT INTO holdfast_migration (version, at, needs) VALUES (2000, %s, 2000)", now)
	})
	for _, r := range []release{old, current} {
		for _, command := range []string{"doctor", "migrate", "serve --listen 127.0.0.1:0"} {
			code, out := r.run(append(strings.Fields(command), "--store", d.address)...)
			if code == 0 || strings.Count(out, "\n") != 1 || !strings.Contains(out, "version 2000") || !strings.Contains(out, "upgrade this program") {
				d.Errorf("holdfast %s of the %s release: exit %d\n%s", command, r.name, code, out)
			}
		}
	}
}
