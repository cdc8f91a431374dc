package sqlite

import (
	"context"
	"maps"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// errorCountStep is the length of a step in which the failures of error groups are counted, in microseconds.
const errorCountStep = int64(5 * time.Minute / time.Microsecond)

// A countedFailure is a failure that counts in its error group.
type countedFailure struct {
	job     holdfast.ID
	failure *holdfast.Failure
	version string
}

// noteFailure notes the failure of an applied settlement if it counts in its error group: it was charged, or it ended
// the job.
func (s *settler) noteFailure(x *store.Settlement) {
	if x.Failure == nil || x.Failure.Fingerprint == "" {
		return
	}
	if x.Charge == store.ChargeFailure || x.Charge == store.ChargeCrash || x.To != holdfast.Queued || s.overruled {
		s.failures = append(s.failures, countedFailure{x.Job, x.Failure, clean(x.Version)})
	}
}

// A failureSite is where a failure happened.
type failureSite struct{ kind, queue, dependency, version string }

// newFailures is what one call adds to an error group.
type newFailures struct {
	first    *holdfast.Failure
	failures int
	sites    map[failureSite]int
}

// countFailures adds the failures of a call to their error groups, once for each group, in the order of their
// fingerprints.
func (s *settler) countFailures() error {
	if len(s.failures) == 0 {
		return nil
	}
	groups, err := s.groupFailures()
	if err != nil {
		return err
	}
	for _, fingerprint := range slices.Sorted(maps.Keys(groups)) {
		if err := s.addFailures(fingerprint, groups[fingerprint]); err != nil {
			return err
		}
	}
	return nil
}

// groupFailures groups the failures of a call by fingerprint.
func (s *settler) groupFailures() (groups map[string]*newFailures, err error) {
	jobs, of := make([]holdfast.ID, 0, len(s.failures)), make(map[holdfast.ID]failureSite, len(s.failures))
	for i := range s.failures {
		jobs = append(jobs, s.failures[i].job)
	}
	err = s.rowsByID("find_failed_jobs", jobs, func(st *sqlite.Stmt) error {
		of[columnID(st, 0)] = failureSite{kind: st.ColumnText(1), queue: st.ColumnText(2)}
		return nil
	})
	groups = map[string]*newFailures{}
	for i := range s.failures {
		x := &s.failures[i]
		g := groups[clean(x.failure.Fingerprint)]
		if g == nil {
			g = &newFailures{first: x.failure, sites: map[failureSite]int{}}
			groups[clean(x.failure.Fingerprint)] = g
		}
		at := of[x.job]
		at.dependency, at.version = clean(x.failure.Dependency), x.version
		g.failures++
		g.sites[at]++
	}
	return groups, err
}

// addFailures adds failures to one error group, and creates the group if it is new. An existing group may change its
// status: the failures can reopen it or make it regress.
func (s *settler) addFailures(fingerprint string, g *newFailures) error {
	row, there, err := s.findErrorGroup(fingerprint)
	if err != nil {
		return err
	}
	if there {
		_, err = s.exec("add_failures", fingerprint, g.failures, s.now)
	} else {
		f := g.first
		_, err = s.exec("error_group_add", fingerprint, clean(f.Code), nullIfEmpty(clean(f.Category)), nullIfEmpty(clean(f.Message)), nullIfEmpty(clean(f.Detail)), g.failures, s.now)
	}
	if err != nil {
		return err
	}
	if there {
		if err := s.changeStatus(fingerprint, row, g); err != nil {
			return err
		}
	}
	for at, n := range g.sites {
		if _, err := s.exec("add_error_counts", fingerprint, s.now-s.now%errorCountStep, at.kind, at.queue, at.dependency, at.version, n); err != nil {
			return err
		}
	}
	return nil
}

// An errorGroupRow is the triage of an error group.
type errorGroupRow struct {
	failures, untilCount int
	status, resolvedIn   string
	until                int64
}

// findErrorGroup reads an error group, and reports whether it exists.
func (t *tx) findErrorGroup(fingerprint string) (row errorGroupRow, there bool, err error) {
	there, err = t.one("find_error_group", []any{fingerprint}, &row.failures, &row.status, &row.until, &row.untilCount, &row.resolvedIn)
	return row, there, err
}

// changeStatus changes the status of an error group as rule.ErrorGroup decides, and records the reason.
func (s *settler) changeStatus(fingerprint string, was errorGroupRow, g *newFailures) error {
	failed := rule.ErrorGroup{Status: store.Status(was.status), Failures: was.failures + g.failures, UntilCount: was.untilCount, ResolvedIn: was.resolvedIn}
	if was.until != 0 {
		failed.Until = instant(was.until)
	}
	var versions []string
	for at := range g.sites {
		versions = append(versions, at.version)
	}
	turn := failed.Turn(instant(s.now), versions)
	if turn.Status == "" {
		return nil
	}
	if _, err := s.exec("change_error_status", fingerprint, string(turn.Status)); err != nil {
		return err
	}
	return s.addSubjectEvent("error/"+fingerprint, turn.Event, rule.Machine, turn.Reason)
}

// Triage records what a person decides about an error group.
func (s *Store) Triage(ctx context.Context, g store.Triage) error {
	if err := g.Check(); err != nil {
		return err
	}
	return s.writer.write(ctx, func(t *tx) error {
		row, there, err := t.findErrorGroup(g.Fingerprint)
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
				count = row.failures + g.Count
			}
			name = string(g.Status)
			if _, err := t.exec("triage", g.Fingerprint, name, until, count, nullIfEmpty(g.Version), g.Actor, nullIfEmpty(clean(g.Reason))); err != nil {
				return err
			}
		}
		return t.addSubjectEvent("error/"+g.Fingerprint, name, g.Actor, g.Reason)
	})
}
