package holdfast

import (
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"
)

// A Record is what those who decide remember between decisions, cluster-wide: a breaker's circuit, a budget's account, a
// redrive's progress, a policy. The store keeps it by compare-and-set and does not look inside.
type Record struct {
	Room    string          `json:"room"` // breaker, budget, redrive, policy, share, ...
	Name    string          `json:"name"`
	Version int             `json:"version"` // 1 when new; grows by one each time it is kept
	Body    json.RawMessage `json:"body"`
	KeptAt  time.Time       `json:"kept_at"`
	AsOf    time.Time       `json:"as_of"` // the store's clock when it was read
}

// A Change is kept all or none. It fails with ErrConflict, naming the record, when a record's version is not the one the
// store holds: somebody else was faster; read again and decide anew. So what a Change announces is announced once.
type Change struct {
	Records  []Record  // Version as it was read, 0 for a new one; a nil Body forgets the record
	Place    []Hold    // each replaces the hold of the same source on the same thing; a bucket keeps its level, within the burst
	Lift     []Hold    // by what they hold and their source; lifting what is not there is no error
	Deposits []Deposit // tokens for buckets; a bucket that is not there takes none
	Events   []Event   // Job or Subject, Name, Actor, Reason and Request; the store sets the rest

	Enqueue   []Draft    // answered by nobody; a draft whose idempotency key was used before is left out, whatever it says
	Deliver   []Draft    // deliveries of subscriptions, which the notifier makes and no other caller: their names are reserved (Reserved)
	Listen    []Listener // each replaces what the listener of that name listens for
	Artifacts []Artifact // each replaces the one of the same job and name
}

// A Deposit adds tokens to the bucket of a hold, up to its burst.
type Deposit struct {
	Hold   Hold // what it holds and its source
	Tokens float64
}

// A Redrive is one step of sending dead letters round again, or of discarding them. Each job is taken at most once by a
// redrive of one id, however often a step is repeated.
type Redrive struct {
	ID      ID
	Jobs    []ID
	Discard bool            // take them off the dead letters instead
	Patch   json.RawMessage // a JSON merge patch (RFC 7396) of each job's arguments
	Queue   string          // where they go; their own when empty
	Actor   string          // required
	Reason  string
}

// Check refuses a redrive that makes no sense, naming every problem at once. Stores call it first.
func (r *Redrive) Check() error {
	var p problems
	p.actor(r.Actor, r.Reason)
	if r.ID.IsZero() {
		p.add("a redrive without an id: give it one, and the same at every step")
	}
	if r.Discard && (r.Patch != nil || r.Queue != "") {
		p.add("a redrive that discards and changes jobs: do one of them")
	}
	if r.Discard && r.Reason == "" {
		p.add("a discard without a reason: say why the jobs are not needed any more")
	}
	if r.Patch != nil && !(json.Valid(r.Patch) && utf8.Valid(r.Patch) && len(r.Patch) <= MaxArgs) {
		p.add("a patch of the arguments that is not valid JSON of at most %d bytes", MaxArgs)
	}
	if r.Queue != "" {
		p.name("queue", r.Queue)
		if err := (&Draft{Queue: r.Queue}).Reserved(); err != nil {
			p = append(p, err)
		}
	}
	return errors.Join(p...)
}

// A Tally is what has become of the jobs a redrive took, in the generation it began.
type Tally struct {
	Taken     int `json:"taken"`
	InFlight  int `json:"in_flight"` // queued or processing
	Complete  int `json:"complete"`
	Failed    int `json:"failed"` // again
	Cancelled int `json:"cancelled"`
	Discarded int `json:"discarded"`
}
