package rule

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// An ErrorGroup is what a store has read of an error group after attempts have failed with it.
type ErrorGroup struct {
	Status     store.Status
	Failures   int       // including the new ones
	Until      time.Time // ignored until then; zero: no time limit
	UntilCount int       // ignored until it has this many failures; 0: no such limit
	ResolvedIn string    // resolved in this version of the application; empty: in any
}

// Turns reports whether new failures could change the status of a group with this status. A store need not read groups with
// another status.
func Turns(s store.Status) bool { return s == store.StatusResolved || s == store.StatusIgnored }

// A Turn is a change of an error group's status, with the name and the reason of its event.
type Turn struct {
	Status store.Status
	Event  string
	Reason string
}

// Turn decides how failures in these versions of the application change the status: a resolved group has regressed, and an
// ignored one is open again when its time or its number of failures is reached. The zero Turn changes nothing.
func (g ErrorGroup) Turn(now time.Time, versions []string) Turn {
	switch {
	case g.Status == store.StatusResolved && g.ResolvedIn == "":
		return Turn{store.StatusRegressed, "regressed", "it failed again after it was resolved"}
	case g.Status == store.StatusResolved && slices.Contains(versions, g.ResolvedIn):
		return Turn{store.StatusRegressed, "regressed", "it failed again after it was resolved in version " + g.ResolvedIn}
	case g.Status == store.StatusIgnored && !g.Until.IsZero() && !g.Until.After(now):
		return Turn{store.StatusOpen, "open again", "it was ignored until " + g.Until.UTC().Format(time.RFC3339)}
	case g.Status == store.StatusIgnored && g.UntilCount > 0 && g.Failures >= g.UntilCount:
		return Turn{store.StatusOpen, "open again", fmt.Sprintf("it was ignored until it had %d failures", g.UntilCount)}
	}
	return Turn{}
}
