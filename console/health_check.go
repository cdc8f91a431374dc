package console

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// healthChecks keeps the result of the last integrity check. One check runs at a time, because it reads the whole store. It is safe for concurrent use.
type healthChecks struct {
	mu   sync.Mutex
	busy time.Time // start of the check in progress; zero if none runs
	last *healthCheck
}

// A healthCheck is the result of an integrity check.
type healthCheck struct {
	At      time.Time
	Took    time.Duration
	By      string
	Healthy bool
	Whole   int // number of jobs
	States  []healthState
	Broken  []brokenInvariant
	Rows    int // rows that violate an invariant
}

// A healthState is the number of jobs in a state.
type healthState struct {
	State holdfast.State
	Jobs  int
	Link  string
}

// A brokenInvariant is a violated invariant with the rows that violate it.
type brokenInvariant struct {
	Rule string
	Rows []brokenRow
	Many bool // there may be more: a check lists at most a hundred rows of an invariant
}

// A brokenRow is a row that violates an invariant.
type brokenRow struct{ Row, Link, Detail string }

const healthMany = 100

// now returns the last result, and the start of a check in progress.
func (m *healthChecks) now() (*healthCheck, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.busy
}

// begin marks a check as running. It returns false if one runs already.
func (m *healthChecks) begin(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.busy.IsZero() {
		return false
	}
	m.busy = now
	return true
}

// end stores the result of a check. A check that failed leaves the last result.
func (m *healthChecks) end(found *healthCheck) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = time.Time{}
	if found != nil {
		m.last = found
	}
}

// check runs an integrity check. It is cancelled if the visitor closes the connection.
func (m *healthChecks) check(q *request) (actionResult, error) {
	to := actionResult{to: "/health#check"}
	if !m.begin(q.now) {
		to.text, to.bad = "A check is already running. Its result is shown here when it ends.", true
		return to, nil
	}
	var found *healthCheck
	defer func() { m.end(found) }()
	began := time.Now()
	report, err := q.operator.CheckIntegrity(q.ctx)
	if err != nil {
		return to, err
	}
	found = &healthCheck{At: q.now, Took: time.Since(began), By: q.visitor.Name, Healthy: report.Healthy, Rows: len(report.Findings)}
	for _, state := range []holdfast.State{holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled} {
		found.States = append(found.States, healthState{state, report.Jobs[state], q.jobs("state:" + string(state))})
		found.Whole += report.Jobs[state]
	}
	found.Broken = q.groupFindings(report.Findings)
	if to.text = fmt.Sprintf("Check complete: no problems in %s.", plural(found.Whole, "job")); !report.Healthy {
		to.text, to.bad = fmt.Sprintf("Check complete: %s violated. The rows are listed below.", plural(len(found.Broken), "invariant")), true
	}
	return to, nil
}

// groupFindings groups findings by the invariant that they violate.
func (q *request) groupFindings(findings []store.Finding) (broken []brokenInvariant) {
	at := map[string]int{}
	for _, f := range findings {
		i, known := at[f.Rule]
		if !known {
			i = len(broken)
			at[f.Rule], broken = i, append(broken, brokenInvariant{Rule: f.Rule})
		}
		row := brokenRow{Row: f.Job, Detail: truncate(f.Detail, 400)}
		if _, err := holdfast.ParseID(f.Job); err == nil {
			row.Link = q.link("/jobs/" + f.Job)
		}
		broken[i].Rows = append(broken[i].Rows, row)
		broken[i].Many = len(broken[i].Rows) >= healthMany
	}
	return broken
}
