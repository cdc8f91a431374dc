package store

import (
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Charge says which counter an attempt increments when it does not complete.
type Charge string

const (
	ChargeNone    Charge = ""        // none: complete, cancelled or expired
	ChargeFailure Charge = "failure" // Failures: the attempt failed
	ChargeCrash   Charge = "crash"   // Crashes: the worker was lost
	ChargeRelease Charge = "release" // Releases: released at no cost
)

// An Attempt is one attempt that has ended. The store keeps no record of a completed attempt besides the job itself; every other
// attempt has one.
type Attempt struct {
	Job        holdfast.ID       `json:"job"`
	Token      int               `json:"token"` // the state that the job entered
	Generation int               `json:"generation"`
	Worker     string            `json:"worker"`
	StartedAt  time.Time         `json:"started_at"`
	EndedAt    time.Time         `json:"ended_at"`
	To         holdfast.State    `json:"to"` // what the job became
	Charge     Charge            `json:"charge,omitempty"`
	DueAt      time.Time         `json:"due_at,omitzero"` // with queued: when the next attempt may start
	Failure    *holdfast.Failure `json:"failure,omitempty"`
	Why        string            `json:"why,omitempty"`   // which rule classified the failure, which policy set the delay
	Said       holdfast.State    `json:"said,omitempty"`  // the state in its settlement, when a pending cancellation overruled it
	Late       bool              `json:"late,omitempty"`  // reported after the lease was lost, or after the attempt had ended the job: recorded, not applied
	Limit      int               `json:"limit,omitempty"` // the limit of the counter that the attempt was charged to
	Count      int               `json:"count,omitempty"` // that counter after this attempt: failures or crashes

	// Repeats is the number of released attempts directly before this one that it stands for. The store keeps the first hundred
	// attempts of a generation one by one; of each series of releases after that it keeps the last. Since is when the first
	// attempt of the series ended.
	Repeats int       `json:"repeats,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}
