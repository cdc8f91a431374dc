package holdfast

import (
	"time"

	"github.com/holdfastdev/holdfast/internal/check"
)

// Replace is what a draft may do to the job that has its unique key (Draft.Replace). While that job is queued and has never been claimed, it takes what the new
// draft says: arguments, queue, priority, tags, maximum attempts, expiry, dependency, RetryWithin, UniqueDone and trace. It keeps its id, its group, its idempotency
// key and its place in the order of age. Its story records the replaced values, and the receipt says Replaced.
//
// An enqueue and a claim never mix contents: the job runs either with the old content or with the new one.
type Replace struct {
	// Start also gives the job the start time of the draft, by Delay or RunAt. Without it the job starts when it would have started.
	Start bool `json:"start,omitempty"`
	// MaxAge bounds how far Start can put the job off: it starts at the latest this long after it was first enqueued. 0: no bound.
	MaxAge time.Duration `json:"max_age,omitempty"`
	// Follow says what happens if the job has been claimed before. False: the draft is not enqueued, and the receipt names the existing job. True: the draft
	// becomes a new job, to which the unique key passes. The other job continues without the key, and the two may run at the same time.
	Follow bool `json:"follow,omitempty"`
}

// Debounce returns an option of Enqueue for a draft with a unique key: the job starts when no other draft with the key has been enqueued for the time quiet, but
// at the latest after the time most (0: no bound), with the content of the last one. A draft that comes after the job has started becomes a new job. It sets Delay
// and Replace.
func Debounce(quiet, most time.Duration) func(*Draft) {
	return func(d *Draft) { d.Delay, d.Replace = quiet, &Replace{Start: true, MaxAge: most, Follow: true} }
}

// checkReplace checks Replace against the other fields.
func (d *Draft) checkReplace(p *check.Problems) {
	r := d.Replace
	if r == nil {
		return
	}
	if d.UniqueKey == "" {
		p.Add("a draft that replaces a job without a unique key: give the key that both have")
	}
	if !d.Group.IsZero() {
		p.Add("a draft that replaces a job and is a member of a group: leave the group out")
	}
	if r.MaxAge < 0 || r.MaxAge > check.MaxDelay {
		p.Add("maximum age %v: give a duration between 0 and 100 years", r.MaxAge)
	}
	if r.MaxAge > 0 && !r.Start {
		p.Add("a maximum age without a new start time: it bounds how far a job is put off, so set start too")
	}
}
