// Package duty is about what engines do on a beat, whatever the jobs are: promote, reclaim, schedules, retention, ... People order it
// (pause, run now) and engines report on it; both are records, and this package says what they mean together. It is pure.
package duty

import (
	"slices"
	"time"
)

// Rooms of the records.
const (
	RoomOrder  = "duty"   // orders, by the duty's name
	RoomReport = "report" // reports, by the worker's name
)

// An Order is what people want of a duty, in every process.
type Order struct {
	Paused bool      `json:"paused,omitempty"`
	Until  time.Time `json:"until,omitzero"` // then it goes on by itself; zero: until a person says so
	Run    int       `json:"run,omitempty"`  // how often somebody asked for a run out of turn; a paused duty runs then too, once
	Actor  string    `json:"actor,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"` // when it was paused
}

// Halts reports whether the duty rests at that time.
func (o Order) Halts(now time.Time) bool {
	return o.Paused && (o.Until.IsZero() || now.Before(o.Until))
}

// Over reports whether a pause has come to its end by itself.
func (o Order) Over(now time.Time) bool { return o.Paused && !o.Halts(now) }

// Resumed is the order after a pause.
func (o Order) Resumed() Order { return Order{Run: o.Run} }

// A Report is what one process says of one duty.
type Report struct {
	Last    time.Time     `json:"last,omitzero"` // when its last round began
	Next    time.Time     `json:"next,omitzero"` // when the next one is to begin, at the latest
	Took    time.Duration `json:"took,omitempty"`
	Runs    int           `json:"runs,omitempty"`
	Error   string        `json:"error,omitempty"` // the last one; it stays after a good round
	ErrorAt time.Time     `json:"error_at,omitzero"`
}

// Reports are those of one process.
type Reports struct {
	Worker string            `json:"worker"`
	At     time.Time         `json:"at"` // when it spoke, by the store's clock
	Duties map[string]Report `json:"duties"`
}

// Silence is how long a process that reports every five seconds may be silent before its word is no longer taken for the
// present.
const Silence = 15 * time.Second

// Fixed are the duties that cannot be paused: without them a worker would hold jobs and not look after them, or look after none.
var Fixed = []string{"claim", "wake", "renew", "watch", "breakers", "trickle", "duties"}

// Pausable reports whether a duty can be paused.
func Pausable(name string) bool { return !slices.Contains(Fixed, name) }

// A Standing is how a duty stands in all processes together.
type Standing struct {
	Name    string        `json:"name"`
	Last    time.Time     `json:"last,omitzero"` // the last round anywhere
	Next    time.Time     `json:"next,omitzero"` // the next one anywhere
	Lag     time.Duration `json:"lag,omitempty"` // how long the next round is overdue, everywhere; 0 while it is paused
	Took    time.Duration `json:"took,omitempty"`
	Error   string        `json:"error,omitempty"` // the last one anywhere
	ErrorAt time.Time     `json:"error_at,omitzero"`
	Paused  bool          `json:"paused,omitempty"`
	Until   time.Time     `json:"until,omitzero"`
	Actor   string        `json:"actor,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Workers int           `json:"workers"` // processes that perform it
}
