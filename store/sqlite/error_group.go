package sqlite

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"zombiezen.com/go/sqlite"
)

// errorCountStep is the length of a step in which the failures of error groups are counted, in microseconds.
const step = int64(5 * time.Minute / time.Microsecond)

// A countedFailure is a failure that counts in its error group.
type trouble struct {
	job     holdfast.ID
	failure *holdfast.Failure
	version string
}

// noteFailure notes the failure of an applied settlement if it counts in its error group: it was charged, or it ended
// the job.
func (s *settler) troubled(x *holdfast.Settlement) {
	if x.Failure == nil || x.Failure.Fingerprint == "" {
		return
	}
	if x.Charge == holdfast.ChargeFailure || x.Charge == holdfast.ChargeCrash || x.To != holdfast.Queued || s.overruled {
		s.troubles = append(s.troubles, trouble{x.Job, x.Failure, clean(x.Version)})
	}
}

// A failureSite is where a failure happened.
type spot struct{ kind, queue, dependency, version string }

// newFailures is what one call adds to an error group.
type group struct {
	first    *holdfast.Failure
	failures int
	spots    map[spot]int
}

// countFailures adds the failures of a call to their error groups, once for each group, in the order of their
// fingerprints.
func (s *settler) count() error {
	if len(s.troubles) == 0 {
		return nil
	}
	groups, err := s.groups()
	if err != nil {
		return err
	}
	for _, fingerprint := range slices.Sorted(maps.Keys(groups)) {
		if err := s.meet(fingerprint, groups[fingerprint]); err != nil {
			return err
		}
	}
	return nil
}

// groupFailures groups the failures of a call by fingerprint.
func (s *settler) groups() (groups map[string]*group, err error) {
	jobs, of := make([]holdfast.ID, 0, len(s.troubles)), make(map[holdfast.ID]spot, len(s.troubles))
	for i := range s.troubles {
		jobs = append(jobs, s.troubles[i].job)
	}
	err = s.some("find_failed_jobs", jobs, func(st *sqlite.Stmt) error {
		of[columnID(st, 0)] = spot{kind: st.ColumnText(1), queue: st.ColumnText(2)}
		return nil
	})
	groups = map[string]*group{}
	for i := range s.troubles {
		x := &s.troubles[i]
		g := groups[clean(x.failure.Fingerprint)]
		if g == nil {
			g = &group{first: x.failure, spots: map[spot]int{}}
			groups[clean(x.failure.Fingerprint)] = g
		}
		at := of[x.job]
		at.dependency, at.version = clean(x.failure.Dependency), x.version
		g.failures++
		g.spots[at]++
	}
	return groups, err
}

// addFailures adds failures to one error group, and creates the group if it is new. An existing group may change its
// status: the failures can reopen it or make it regress.
func (s *settler) meet(fingerprint string, g *group) error {
	stand, there, err := s.trouble(fingerprint)
	if err != nil {
		return err
	}
	if there {
		_, err = s.exec("add_failures", fingerprint, g.failures, s.now)
	} else {
		f := g.first
		_, err = s.exec("error_group_add", fingerprint, clean(f.Code), orNull(clean(f.Category)), orNull(clean(f.Message)), orNull(clean(f.Detail)), g.failures, s.now)
	}
	if err != nil {
		return err
	}
	if there {
		if err := s.turn(fingerprint, stand, g); err != nil {
			return err
		}
	}
	for at, n := range g.spots {
		if _, err := s.exec("add_error_counts", fingerprint, s.now-s.now%step, at.kind, at.queue, at.dependency, at.version, n); err != nil {
			return err
		}
	}
	return nil
}

// An errorGroupRow is the triage of an error group.
type groupStanding struct {
	failures, untilCount int
	status, resolvedIn   string
	until                int64
}

// findErrorGroup reads an error group, and reports whether it exists.
func (t *tx) trouble(fingerprint string) (stand groupStanding, there bool, err error) {
	there, err = t.one("find_error_group", []any{fingerprint}, &stand.failures, &stand.status, &stand.until, &stand.untilCount, &stand.resolvedIn)
	return stand, there, err
}

// changeStatus changes the status of an error group as rule.ErrorGroup decides, and records the reason.
func (s *settler) turn(fingerprint string, was groupStanding, g *group) error {
	met := rule.ErrorGroup{Status: holdfast.Status(was.status), Failures: was.failures + g.failures, UntilCount: was.untilCount, ResolvedIn: was.resolvedIn}
	if was.until != 0 {
		met.Until = instant(was.until)
	}
	var versions []string
	for at := range g.spots {
		versions = append(versions, at.version)
	}
	turn := met.Turn(instant(s.now), versions)
	if turn.Status == "" {
		return nil
	}
	if _, err := s.exec("change_error_status", fingerprint, string(turn.Status)); err != nil {
		return err
	}
	return s.tellOf("error/"+fingerprint, turn.Event, rule.Machine, turn.Reason)
}

// Triage records what a person decides about an error group.
func (s *Store) Triage(ctx context.Context, g holdfast.Triage) error {
	if err := g.Check(); err != nil {
		return err
	}
	return s.writer.write(ctx, func(t *tx) error {
		stand, there, err := t.trouble(g.Fingerprint)
		if err != nil {
			return err
		}
		if !there {
			return rule.NoErrorGroup(g.Fingerprint)
		}
		name := "note"
		if g.Status != "" {
			var until, count any
			if g.For > 0 {
				until = t.at(g.For)
			}
			if g.Count > 0 {
				count = stand.failures + g.Count
			}
			name = string(g.Status)
			if _, err := t.exec("triage", g.Fingerprint, name, until, count, orNull(g.Version), g.Actor, orNull(clean(g.Reason))); err != nil {
				return err
			}
		}
		return t.tellOf("error/"+g.Fingerprint, name, g.Actor, g.Reason)
	})
}
