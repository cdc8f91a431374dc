package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// promises are what settlements say of the next attempts.
type promises struct{ at, job, token column }

func (r *promises) add(n *holdfast.Settlement, now time.Time) {
	if n.Within > 0 {
		r.at.micros(now.Add(n.Within))
		r.job.id(n.Job)
		r.token.int(n.Token)
	}
}

func (r *promises) queue(p *pipe, sql map[string]string) {
	if len(r.at.text) > 0 {
		p.Queue(sql["deadline_add"], r.at.String(), r.job.String(), r.token.String())
	}
}

// troubles are the failures of a call, by fingerprint.
type troubles struct {
	groups                                map[string]*trouble
	fingerprint, job, dependency, version column // of each failure
}

// A trouble is one error group in one call, with its first failure.
type trouble struct {
	first    *holdfast.Failure
	failures int
	versions []string
}

// add counts an attempt that failed, or whose worker was lost, or that ended its job. What was handed back for free is no trouble.
func (t *troubles) add(n *holdfast.Settlement, to holdfast.State) {
	f := n.Failure
	counts := n.Charge == holdfast.ChargeFailure || n.Charge == holdfast.ChargeCrash || to.Terminal()
	if f == nil || f.Fingerprint == "" || !counts {
		return
	}
	name := clean(f.Fingerprint)
	if t.groups == nil {
		t.groups = map[string]*trouble{}
	}
	if t.groups[name] == nil {
		t.groups[name] = &trouble{first: f}
	}
	t.groups[name].failures++
	t.groups[name].versions = append(t.groups[name].versions, clean(n.Version))
	t.fingerprint.quote(name)
	t.job.id(n.Job)
	t.dependency.quote(clean(f.Dependency))
	t.version.quote(clean(n.Version))
}

// write adds them to their groups: last of all, because many settlements may want the same rows at once. Only where a group was resolved or
// ignored when the settlement began is another round trip spent to decide, under the lock of its row, whether it turns. A status that changes
// in between stays until the next failure.
func (t *settling) writeTroubles(ctx context.Context) error {
	if len(t.troubles.groups) == 0 {
		return nil
	}
	p, sql, at := t.p, t.s.sql, stamp(t.now)
	var fingerprint, code, category, message, detail, failures column
	for _, name := range slices.Sorted(maps.Keys(t.troubles.groups)) {
		g := t.troubles.groups[name]
		fingerprint.quote(name)
		code.quote(clean(g.first.Code))
		category.some(clean(g.first.Category))
		message.some(clean(g.first.Message))
		detail.some(clean(g.first.Detail))
		failures.int(g.failures)
	}
	p.Queue(sql["add_failures"], append([]any{at}, literals([]column{fingerprint, code, category, message, detail, failures})...)...)
	if t.turnable {
		if err := t.turn(ctx, fingerprint.String()); err != nil {
			return err
		}
	}
	p.Queue(sql["add_error_counts"], append([]any{at}, literals([]column{t.troubles.fingerprint, t.troubles.job, t.troubles.dependency, t.troubles.version})...)...)
	return nil
}

// turn reads the groups, whose rows are locked by now, and changes the status of those that the rules turn.
func (t *settling) turn(ctx context.Context, fingerprints string) error {
	var name, status, resolvedIn string
	var g rule.ErrorGroup
	var until *time.Time
	var which, to, event, reason column
	into := []any{&name, &status, &g.Failures, &until, &g.UntilCount, &resolvedIn}
	t.p.each(t.s.sql["read_error_groups"], []any{fingerprints}, into, func() error {
		g.Status, g.ResolvedIn, g.Until = holdfast.Status(status), resolvedIn, time.Time{}
		if until != nil {
			g.Until = *until
		}
		if turn := g.Turn(t.now, t.troubles.groups[name].versions); turn.Status != "" {
			which.quote(name)
			to.quote(string(turn.Status))
			event.quote(turn.Event)
			reason.quote(turn.Reason)
		}
		return nil
	})
	if err := t.p.flush(ctx); err != nil || len(which.text) == 0 {
		return err
	}
	t.p.Queue(t.s.sql["change_error_status"], append([]any{stamp(t.now), rule.Machine}, literals([]column{which, to, event, reason})...)...)
	return nil
}

// Triage keeps a person's word on an error group.
func (s *Store) Triage(ctx context.Context, t holdfast.Triage) error {
	if err := t.Check(); err != nil {
		return err
	}
	name := string(t.Status)
	if name == "" {
		name = "note"
	}
	return s.ask(ctx, "judge the error group", false, func(ctx context.Context) error {
		return s.transact(ctx, s.work, func(p *pipe) error {
			var now time.Time
			p.one(s.sql["now"], nil, &now)
			if err := p.flush(ctx); err != nil {
				return err
			}
			there := false
			p.Queue(s.sql["triage"], clean(t.Fingerprint), string(t.Status), micros(t.For), t.Count, clean(t.Version), t.Actor, clean(t.Reason), stamp(now)).
				Exec(func(tag pgconn.CommandTag) error { there = tag.RowsAffected() > 0; return nil })
			if err := p.flush(ctx); err != nil {
				return err
			}
			if !there {
				return rule.NoErrorGroup(t.Fingerprint)
			}
			s.tell(p.Batch, holdfast.Event{Subject: "error/" + clean(t.Fingerprint), Name: name, Actor: t.Actor, Reason: t.Reason}, now)
			return nil
		})
	})
}
