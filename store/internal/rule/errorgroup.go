package rule

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

// An ErrorGroup is what a store has read of an error group in which attempts have just failed.
type ErrorGroup struct {
	Status     holdfast.Status
	Failures   int       // with those that have just happened
	Until      time.Time // ignored until then; zero: by no time
	UntilCount int       // ignored until it has so many failures; 0: by no count
	ResolvedIn string    // resolved in this version of the application; empty: in any
}

// Turns reports whether further failures could change the status of a group with this status. A store need not read the others.
func Turns(s holdfast.Status) bool { return s == holdfast.Resolved || s == holdfast.Ignored }

// A Turn is a change of an error group's status, with the name and the reason of its event.
type Turn struct {
	Status holdfast.Status
	Event  string
	Reason string
}

// Turn decides what failures in these versions of the application make of the group: a resolved one has regressed, and an ignored one is open again when its
// time or its count has been reached. The zero Turn leaves the group as it is.
func (g ErrorGroup) Turn(now time.Time, versions []string) Turn {
	switch {
	case g.Status == holdfast.Resolved && g.ResolvedIn == "":
		return Turn{holdfast.Regressed, "regressed", "it was resolved, and failed again"}
	case g.Status == holdfast.Resolved && slices.Contains(versions, g.ResolvedIn):
		return Turn{holdfast.Regressed, "regressed", "it was resolved, and failed again in version " + g.ResolvedIn}
	case g.Status == holdfast.Ignored && !g.Until.IsZero() && !g.Until.After(now):
		return Turn{holdfast.Open, "open again", "it was ignored until " + g.Until.UTC().Format(time.RFC3339)}
	case g.Status == holdfast.Ignored && g.UntilCount > 0 && g.Failures >= g.UntilCount:
		return Turn{holdfast.Open, "open again", fmt.Sprintf("it was ignored until it had failed %d times", g.UntilCount)}
	}
	return Turn{}
}
