package engine

import "time"

// pace is how fast the slots work and the store answers claims, as moving averages. It decides how many leases the engine holds ahead of a free slot. The
// lease table guards it.
type pace struct {
	runsEnded int           // handlers that returned since the last claim
	runTime   time.Duration // the time these handlers took together
	avgRun    time.Duration // moving average of the time a handler takes; 0: not known
	avgClaim  time.Duration // moving average of the time a claim takes
}

// ahead returns how many leases to hold ahead, at most limit.
//
// While the store answers a claim, the slots process slots × avgClaim / avgRun jobs. The engine holds twice as many ahead, so that slots do not idle during
// a claim. Slow jobs make this number zero: then the engine claims only for free slots and takes no jobs that other workers could start sooner.
// Until the first handler has returned avgRun is not known, and nothing is held ahead.
func (p *pace) ahead(slots, limit int) int {
	if p.avgRun <= 0 {
		return 0
	}
	return int(min(float64(limit), 2*float64(slots)*float64(p.avgClaim)/float64(p.avgRun)))
}

// runEnded records a handler that returned.
func (p *pace) runEnded(took time.Duration) {
	p.runsEnded++
	p.runTime += took
}

// claimEnded updates the averages: half the old value, half the mean of the runs since the last claim, or the time of this claim.
func (p *pace) claimEnded(took time.Duration) {
	p.avgClaim = (p.avgClaim + took) / 2
	if p.runsEnded > 0 {
		mean := max(p.runTime/time.Duration(p.runsEnded), 1)
		p.avgRun = (orElse(p.avgRun, mean) + mean) / 2
	}
	p.runsEnded, p.runTime = 0, 0
}

// forgetRuns forgets how long handlers take, because they have become slower.
func (p *pace) forgetRuns() { p.avgRun, p.runsEnded, p.runTime = 0, 0, 0 }
