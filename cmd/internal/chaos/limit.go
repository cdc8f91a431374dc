package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Some jobs of every run call a dependency with a limit: at most two may be processing at the same time.
const (
	limitedDependency = "chaos-printer"
	limitedMax        = 2
)

// placeLimit places the limit.
func placeLimit(ctx context.Context, s store.Store) error {
	err := s.Pause(ctx, store.Hold{Dependency: limitedDependency, Source: store.SourceLimit, AtMost: limitedMax, Actor: "chaos", Reason: "two printers"})
	if err != nil {
		return fmt.Errorf("cannot place the limit: %w", err)
	}
	return nil
}

// A leaseInterval is an interval in which a job was certainly leased, whether its worker was running, frozen or dead.
type leaseInterval struct {
	job        holdfast.ID
	from, till int64
}

// withinLimit checks that there was no time at which more jobs of the limited dependency were leased than the limit allows.
func (v *verdict) withinLimit(jobLogs map[holdfast.ID]*jobLog, histories map[holdfast.ID]store.History) {
	var intervals []leaseInterval
	for id, d := range jobLogs {
		for _, c := range d.claims {
			if c.Dependency != limitedDependency {
				continue
			}
			if end := d.leaseEnd(c, histories[id]); end > c.Till {
				intervals = append(intervals, leaseInterval{id, c.Till, end})
			}
		}
	}
	v.atMost(limitedMax, intervals, limitedDependency)
}

// atMost checks that there was no time at which more leases were held than allowed. of names what they have in common.
func (v *verdict) atMost(allowed int, intervals []leaseInterval, of string) {
	slices.SortFunc(intervals, func(a, b leaseInterval) int { return cmp.Compare(a.from, b.from) })
	var now []leaseInterval
	for _, s := range intervals {
		now = slices.DeleteFunc(now, func(o leaseInterval) bool { return o.till <= s.from })
		now = append(now, s)
		v.record(&v.exceeded, len(now) > allowed, "%d jobs of %s were processing at the same time: %v", len(now), of, now)
	}
}

// leaseEnd returns the earliest time at which a lease may have ended: its worker sent a settlement, another process claimed the job, or the history shows the
// end of the attempt. 0: unknown.
func (d *jobLog) leaseEnd(c line, h store.History) (end int64) {
	earliest := func(at int64) {
		if end == 0 || at < end {
			end = at
		}
	}
	for settlementKey, l := range d.intents {
		if settlementKey.token == c.Token {
			earliest(l.From)
		}
	}
	for _, other := range d.claims {
		if other.Token > c.Token {
			earliest(other.From)
		}
	}
	for _, a := range h.Attempts {
		if a.Token >= c.Token && !a.Late {
			earliest(a.EndedAt.UnixNano())
		}
	}
	return end
}
