package engine

import (
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

const (
	// maxProbed limits how many jobs a breaker record remembers as having probed.
	maxProbed = 100
	// probeTurn is how much longer each further set of jobs that have probed waits in a half-open breaker, where a set is as many as may probe at once. It
	// is shorter for a breaker that opens for less than 30 s.
	probeTurn = time.Second
	// lastAttemptWait is how long after a failed call of a dependency no job makes its last attempt, unless a later call succeeded.
	lastAttemptWait = 5 * time.Second
)

// A probeOrder lists the jobs that have probed a dependency, latest last, and determines how long each waits before it probes again. It is immutable.
type probeOrder struct {
	probed  []holdfast.ID
	turn    time.Duration // how much longer each further set of jobs waits
	perTurn int           // how many jobs are a set
	maxWait time.Duration
}

// wait returns how long a job waits from the moment the breaker is half-open. Jobs that have not probed go at once; of the others, those whose probe was longest
// ago go first. So jobs take turns to probe, jobs that always fail do not keep a breaker open, and a single job still probes.
func (p *probeOrder) wait(job holdfast.ID) time.Duration {
	place := slices.Index(p.probed, job)
	if place < 0 {
		return 0
	}
	return min(p.turn*time.Duration(1+place/p.perTurn), p.maxWait)
}

// probedBy returns the jobs that have probed: those in the record and those of the failed calls. It returns none if the breaker is closed.
func probedBy(c *breakerRecord, all []call) []holdfast.ID {
	if isClosed(c) {
		return nil
	}
	probed := c.Probed
	for _, each := range all {
		if !each.bad {
			continue
		}
		probed = append(slices.DeleteFunc(slices.Clone(probed), func(id holdfast.ID) bool { return id == each.job }), each.job)
	}
	return probed[max(0, len(probed)-maxProbed):]
}

// isClosed reports whether a breaker admits all jobs.
func isClosed(c *breakerRecord) bool {
	return c.State == breaker.Closed || c.State == breaker.ForcedClosed || c.State == ""
}
