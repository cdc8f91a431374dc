// Package duty describes the duties that engines run at intervals: promote, reclaim, schedules, retention and so on. Operators request things of a duty (pause, run now),
// and engines report how their duties run. Both are records in the store; this package defines them and combines them into a status. It is pure: it does no I/O.
package duty

import (
	"slices"
	"time"
)

// The namespaces of the records.
const (
	NamespaceControl = "duty"   // an Order for each duty, by its name
	NamespaceReport  = "report" // the Reports of each worker, by its name
)

// A Control is what operators have requested of a duty. It applies in every process.
type Control struct {
	Paused bool      `json:"paused,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when the pause ends; zero: when an operator resumes the duty
	Run    int       `json:"run,omitempty"`  // how many runs were requested so far; a new one runs the duty once in every process, even if it is paused
	Actor  string    `json:"actor,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"` // when the duty was paused
}

// Halts reports whether the duty is paused at that time.
func (o Control) Halts(now time.Time) bool {
	return o.Paused && (o.Until.IsZero() || now.Before(o.Until))
}

// Over reports whether the duty was paused and the pause has ended because its time is up.
func (o Control) Over(now time.Time) bool { return o.Paused && !o.Halts(now) }

// Resumed returns the order without its pause.
func (o Control) Resumed() Control { return Control{Run: o.Run} }

// A Report is how one duty runs in one process.
type Report struct {
	Last    time.Time     `json:"last,omitzero"` // when the last run started
	Next    time.Time     `json:"next,omitzero"` // when the next run will start at the latest
	Took    time.Duration `json:"took,omitempty"`
	Runs    int           `json:"runs,omitempty"`
	Error   string        `json:"error,omitempty"` // the last error; it remains after a successful run
	ErrorAt time.Time     `json:"error_at,omitzero"`
}

// Reports are the reports of one process.
type Reports struct {
	Worker string            `json:"worker"`
	At     time.Time         `json:"at"` // when it was written, by the store's clock
	Duties map[string]Report `json:"duties"`
}

// GoneAfter is the age up to which a report counts as current. Processes report every five seconds.
const GoneAfter = 15 * time.Second

// Fixed are the duties that cannot be paused: without them a worker would not renew, watch or claim its jobs.
var Fixed = []string{"claim", "wake", "renew", "watch", "breakers", "trickle", "duties"}

// Pausable reports whether a duty can be paused.
func Pausable(name string) bool { return !slices.Contains(Fixed, name) }

// A Status is the status of a duty across all processes.
type Status struct {
	Name    string        `json:"name"`
	Last    time.Time     `json:"last,omitzero"` // the last run in any process
	Next    time.Time     `json:"next,omitzero"` // the next run in any process
	Lag     time.Duration `json:"lag,omitempty"` // how long the next run is overdue in every process; 0 while the duty is paused
	Took    time.Duration `json:"took,omitempty"`
	Error   string        `json:"error,omitempty"` // the last error in any process
	ErrorAt time.Time     `json:"error_at,omitzero"`
	Paused  bool          `json:"paused,omitempty"`
	Until   time.Time     `json:"until,omitzero"`
	Actor   string        `json:"actor,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Workers int           `json:"workers"` // how many processes run it
}
