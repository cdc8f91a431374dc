package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfastdev/holdfast"
)

// Some jobs of every run call a dependency with a limit: at most two may be processing at the same time.
const (
	scarce     = "chaos-printer"
	scarceMost = 2
)

// limit places the limit.
func limit(ctx context.Context, s holdfast.Store) error {
	err := s.Pause(ctx, holdfast.Hold{Dependency: scarce, Source: holdfast.SourceLimit, AtMost: scarceMost, Actor: "chaos", Reason: "two printers"})
	if err != nil {
		return fmt.Errorf("cannot place the limit: %w", err)
	}
	return nil
}

// A spell is an interval in which a job was certainly leased, whether its worker was running, frozen or dead.
type spell struct {
	job        holdfast.ID
	from, till int64
}

// withinLimit checks that there was no time at which more jobs of the limited dependency were leased than the limit allows.
func (v *verdict) withinLimit(dossiers map[holdfast.ID]*dossier, histories map[holdfast.ID]holdfast.History) {
	var spells []spell
	for id, d := range dossiers {
		for _, c := range d.claims {
			if c.Dependency != scarce {
				continue
			}
			if end := d.leaseEnd(c, histories[id]); end > c.Till {
				spells = append(spells, spell{id, c.Till, end})
			}
		}
	}
	slices.SortFunc(spells, func(a, b spell) int { return cmp.Compare(a.from, b.from) })
	var now []spell
	for _, s := range spells {
		now = slices.DeleteFunc(now, func(o spell) bool { return o.till <= s.from })
		now = append(now, s)
		v.accuse(&v.exceeded, len(now) > scarceMost, "%d jobs of %s were processing at the same time: %v", len(now), scarce, now)
	}
}

// leaseEnd returns the earliest time at which a lease may have ended: its worker sent a settlement, another process claimed the job, or the history shows the
// end of the attempt. 0: unknown.
func (d *dossier) leaseEnd(c line, h holdfast.History) (end int64) {
	earliest := func(at int64) {
		if end == 0 || at < end {
			end = at
		}
	}
	for deed, l := range d.intents {
		if deed.token == c.Token {
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
