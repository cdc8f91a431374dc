package console

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A healthMemo remembers the last check. One runs at a time: it reads the whole store.
type healthMemo struct {
	mu   sync.Mutex
	busy time.Time // since when one is under way
	last *healthCheck
}

// A healthCheck is what a check found.
type healthCheck struct {
	At      time.Time
	Took    time.Duration
	By      string
	Healthy bool
	Whole   int // jobs
	States  []healthState
	Broken  []healthPromise
	Rows    int // that break a promise
}

// A healthState is how many jobs there are in a state.
type healthState struct {
	State holdfast.State
	Jobs  int
	Link  string
}

// A healthPromise is one that is broken, and by what.
type healthPromise struct {
	Rule string
	Rows []healthBroken
	Many bool // there may be more: a promise names a hundred rows at the most
}

// A healthBroken is a row that breaks a promise.
type healthBroken struct{ Row, Link, Detail string }

const healthMany = 100

// now is what is remembered, and since when a check is under way.
func (m *healthMemo) now() (*healthCheck, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.busy
}

// begin reports whether a check may begin.
func (m *healthMemo) begin(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.busy.IsZero() {
		return false
	}
	m.busy = now
	return true
}

// end remembers what a check found; one that did not come to its end leaves the last.
func (m *healthMemo) end(found *healthCheck) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = time.Time{}
	if found != nil {
		m.last = found
	}
}

// check puts every promise to the test. It ends when whoever asked goes away.
func (m *healthMemo) check(q *ask) (done, error) {
	to := done{to: "/health#check"}
	if !m.begin(q.now) {
		to.text, to.bad = "A check is under way already. Its result is shown here when it ends.", true
		return to, nil
	}
	var found *healthCheck
	defer func() { m.end(found) }()
	began := time.Now()
	report, err := q.desk.Doctor(q.ctx)
	if err != nil {
		return to, err
	}
	found = &healthCheck{At: q.now, Took: time.Since(began), By: q.visitor.Name, Healthy: report.Healthy, Rows: len(report.Findings)}
	for _, state := range []holdfast.State{holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled} {
		found.States = append(found.States, healthState{state, report.Jobs[state], q.jobs("state:" + string(state))})
		found.Whole += report.Jobs[state]
	}
	found.Broken = q.healthBroken(report.Findings)
	if to.text = fmt.Sprintf("Checked: no promise is broken in %s.", plural(found.Whole, "job")); !report.Healthy {
		to.text, to.bad = fmt.Sprintf("Checked: %s broken. The rows are named below.", plural(len(found.Broken), "promise")), true
		if len(found.Broken) == 1 {
			to.text = "Checked: 1 promise is broken. The rows are named below."
		}
	}
	return to, nil
}

// healthBroken gathers findings by the promise they break.
func (q *ask) healthBroken(findings []holdfast.Finding) (broken []healthPromise) {
	at := map[string]int{}
	for _, f := range findings {
		i, known := at[f.Rule]
		if !known {
			i = len(broken)
			at[f.Rule], broken = i, append(broken, healthPromise{Rule: f.Rule})
		}
		row := healthBroken{Row: f.Job, Detail: cut(f.Detail, 400)}
		if _, err := holdfast.ParseID(f.Job); err == nil {
			row.Link = q.link("/jobs/" + f.Job)
		}
		broken[i].Rows = append(broken[i].Rows, row)
		broken[i].Many = len(broken[i].Rows) >= healthMany
	}
	return broken
}
