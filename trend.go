package holdfast

import "time"

// A Trend is what became of the attempts of one queue within one step. It is written in the transaction that settles them.
type Trend struct {
	Step      time.Time `json:"step"` // when it begins
	Queue     string    `json:"queue"`
	Complete  int       `json:"complete"`
	Failed    int       `json:"failed"`    // for good
	Retried   int       `json:"retried"`   // failed, or lost its worker, and goes round again
	Cancelled int       `json:"cancelled"` // while it was under way: a job that is cancelled before it starts makes no attempt
}

// A Depth is what stands in one queue. Numbers stop at ten thousand or sooner, and More says so.
type Depth struct {
	Queue      string    `json:"queue"`
	Ready      int       `json:"ready"`             // claimable now, but for holds
	Later      int       `json:"later"`             // waits for its time, or for members of its group
	Retrying   int       `json:"retrying"`          // waits for its next attempt after a failure, and is not due
	Processing int       `json:"processing"`        // in workers' hands
	Dead       int       `json:"dead"`              // dead letters
	Oldest     time.Time `json:"oldest,omitzero"`   // creation of the oldest claimable job
	NextDue    time.Time `json:"next_due,omitzero"` // of what waits for its time: when the first may start
	Kinds      []string  `json:"kinds,omitempty"`   // of claimable jobs, by name: the first five thousand lanes are looked at
	// AtLeast names the numbers (ready, later, retrying, processing, dead) beyond which the store did not count: there may be more. The others are exact.
	AtLeast []string `json:"at_least,omitempty"`
}

// An ErrorTrend is how one error group comes and goes, and what became of the jobs that met it.
type ErrorTrend struct {
	Fingerprint string `json:"fingerprint"`
	Failures    []int  `json:"failures"` // failed attempts in each step, the oldest first
	Dead        int    `json:"dead"`     // dead letters of it now, up to a thousand
	// Of the jobs of its newest two hundred failures: how many completed since, failed for good, or are under way.
	Recovered int `json:"recovered"`
	Failed    int `json:"failed"`
	Live      int `json:"live"`
}
