package store

import (
	"time"
)

// A Trend counts the attempts of one queue that ended within one time step. The store writes it in the transaction that
// settles them.
type Trend struct {
	Step      time.Time `json:"step"` // start of the step
	Queue     string    `json:"queue"`
	Complete  int       `json:"complete"`
	Failed    int       `json:"failed"`    // for good
	Retried   int       `json:"retried"`   // failed or lost the worker, and the job is queued for another attempt
	Cancelled int       `json:"cancelled"` // while running; a job that is cancelled before it starts makes no attempt
}

// A Depth is the number of jobs in one queue, by state. The store stops counting at ten thousand or earlier; AtLeast names
// the numbers that are not exact.
type Depth struct {
	Queue      string    `json:"queue"`
	Ready      int       `json:"ready"`             // due; holds may still keep them from being claimed
	Later      int       `json:"later"`             // waiting for a start time, or for members of their group
	Retrying   int       `json:"retrying"`          // waiting for the time of a retry
	Processing int       `json:"processing"`        // leased to workers
	Dead       int       `json:"dead"`              // dead letters
	Oldest     time.Time `json:"oldest,omitzero"`   // creation time of the oldest ready job
	NextDue    time.Time `json:"next_due,omitzero"` // start time of the first job that waits for its start time
	Kinds      []string  `json:"kinds,omitempty"`   // kinds of ready jobs, sorted; only the first five thousand lanes are read
	// AtLeast lists the numbers (ready, later, retrying, processing, dead) at which the store stopped counting: there may
	// be more. The others are exact.
	AtLeast []string `json:"at_least,omitempty"`
}

// An ErrorTrend is the number of failures of one error group over time, and the current state of its jobs.
type ErrorTrend struct {
	Fingerprint string `json:"fingerprint"`
	Failures    []int  `json:"failures"` // failed attempts in each step, the oldest first
	Dead        int    `json:"dead"`     // current dead letters, up to a thousand
	// States of the jobs of its newest two hundred failures: complete, failed for good, or not ended.
	Recovered int `json:"recovered"`
	Failed    int `json:"failed"`
	Live      int `json:"live"`
}

// RetryStats counts what happened after failed attempts of one kind with one code and attempt number. It shows
// whether retries help. The entry with number 0 and no code counts first attempts instead.
type RetryStats struct {
	Kind     string        `json:"kind"`
	Code     string        `json:"code,omitempty"`
	Number   int           `json:"number"`   // of the failed attempt; 1 is the first
	Attempts int           `json:"attempts"` // failed attempts; with number 0: jobs that made a first attempt
	Complete int           `json:"complete"` // the next attempt completed; with number 0: the first attempt completed
	Again    int           `json:"again"`    // the next attempt failed too
	GaveUp   int           `json:"gave_up"`  // there was no next attempt: the job failed for good
	Took     time.Duration `json:"took"`     // total run time of these failed attempts
	Wasted   time.Duration `json:"wasted"`   // part of Took that belongs to jobs that failed for good in the end
}
