package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfastdev/holdfast"
)

// Some jobs of every run call something of which there is little.
const (
	scarce     = "chaos-printer"
	scarceMost = 2
)

func limit(ctx context.Context, s holdfast.Store) error {
	err := s.Pause(ctx, holdfast.Hold{Dependency: scarce, Source: holdfast.SourceLimit, AtMost: scarceMost, Actor: "chaos", Reason: "there are two of them"})
	if err != nil {
		return fmt.Errorf("the limit cannot be placed: %w", err)
	}
	return nil
}

// A spell is a time in which a job was surely in a worker's hands, whether that worker lived, was frozen or dead.
type spell struct {
	job        holdfast.ID
	from, till int64
}

// withinLimit: there was no moment at which more jobs of the scarce dependency were under a lease than may be.
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
		v.accuse(&v.exceeded, len(now) > scarceMost, "%d jobs of %s were in workers' hands at once: %v", len(now), scarce, now)
	}
}

// leaseEnd is the first moment at which a lease may have ended: its holder settled it, somebody else was handed the job, or the
// store says that an attempt ended. 0: nobody knows.
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
