package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// startDeadlines are the deadlines for the start of the next attempts, as settlements promise them.
type startDeadlines struct{ at, job, token column }

func (r *startDeadlines) add(n *store.Settlement, now time.Time) {
	if n.StartWithin > 0 {
		r.at.micros(now.Add(n.StartWithin))
		r.job.id(n.Job)
		r.token.int(n.Token)
	}
}

func (r *startDeadlines) queue(p *pipeline, sql map[string]string) {
	if len(r.at.text) > 0 {
		p.Queue(sql["deadline_add"], r.at.String(), r.job.String(), r.token.String())
	}
}

// errorGroupCounts are the failures of a call, by fingerprint.
type errorGroupCounts struct {
	groups                                map[string]*errorGroupCount
	fingerprint, job, dependency, version column // one element for each failure
}

// An errorGroupCount is what one call adds to an error group, with its first failure.
type errorGroupCount struct {
	first    *holdfast.Failure
	failures int
	versions []string
}

// add counts an attempt that failed, whose worker was lost, or that ended its job. A released attempt does not count.
func (t *errorGroupCounts) add(n *store.Settlement, to holdfast.State) {
	f := n.Failure
	counts := n.Charge == store.ChargeFailure || n.Charge == store.ChargeCrash || to.Terminal()
	if f == nil || f.Fingerprint == "" || !counts {
		return
	}
	name := cleanText(f.Fingerprint)
	if t.groups == nil {
		t.groups = map[string]*errorGroupCount{}
	}
	if t.groups[name] == nil {
		t.groups[name] = &errorGroupCount{first: f}
	}
	t.groups[name].failures++
	t.groups[name].versions = append(t.groups[name].versions, cleanText(n.Version))
	t.fingerprint.quote(name)
	t.job.id(n.Job)
	t.dependency.quote(cleanText(f.Dependency))
	t.version.quote(cleanText(n.Version))
}

// writeErrorGroups adds the failures to their error groups. It runs late, because many settlements may lock the same rows. If one of the groups was
// resolved or ignored when the settlement began, another round trip decides under the row lock whether its status changes. A group that was resolved
// or ignored after that keeps its status until its next failure.
func (t *settleCall) writeErrorGroups(ctx context.Context) error {
	if len(t.errorGroups.groups) == 0 {
		return nil
	}
	p, sql, at := t.p, t.s.sql, timestamp(t.now)
	var fingerprint, code, category, message, detail, failures column
	for _, name := range slices.Sorted(maps.Keys(t.errorGroups.groups)) {
		g := t.errorGroups.groups[name]
		fingerprint.quote(name)
		code.quote(cleanText(g.first.Code))
		category.textOrNull(cleanText(g.first.Category))
		message.textOrNull(cleanText(g.first.Message))
		detail.textOrNull(cleanText(g.first.Detail))
		failures.int(g.failures)
	}
	p.Queue(sql["add_failures"], append([]any{at}, arrayArgs([]column{fingerprint, code, category, message, detail, failures})...)...)
	if t.mayChangeStatus {
		if err := t.changeStatuses(ctx, fingerprint.String()); err != nil {
			return err
		}
	}
	p.Queue(sql["add_error_counts"], append([]any{at}, arrayArgs([]column{t.errorGroups.fingerprint, t.errorGroups.job, t.errorGroups.dependency, t.errorGroups.version})...)...)
	return nil
}

// changeStatuses reads the groups, whose rows are locked, and changes the status of those for which rule.ErrorGroup.Turn asks for it.
func (t *settleCall) changeStatuses(ctx context.Context, fingerprints string) error {
	var name, status, resolvedIn string
	var g rule.ErrorGroup
	var until *time.Time
	var which, to, event, reason column
	into := []any{&name, &status, &g.Failures, &until, &g.UntilCount, &resolvedIn}
	t.p.queueRows(t.s.sql["read_error_groups"], []any{fingerprints}, into, func() error {
		g.Status, g.ResolvedIn, g.Until = store.Status(status), resolvedIn, time.Time{}
		if until != nil {
			g.Until = *until
		}
		if turn := g.Turn(t.now, t.errorGroups.groups[name].versions); turn.Status != "" {
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
	t.p.Queue(t.s.sql["change_error_status"], append([]any{timestamp(t.now), rule.Machine}, arrayArgs([]column{which, to, event, reason})...)...)
	return nil
}

// Triage stores an operator's decision or note on an error group.
func (s *Store) Triage(ctx context.Context, t store.Triage) error {
	if err := t.Check(); err != nil {
		return err
	}
	name := string(t.Status)
	if name == "" {
		name = "note"
	}
	return s.withRetries(ctx, "triage the error group", false, func(ctx context.Context) error {
		return s.transact(ctx, s.work, func(p *pipeline) error {
			var now time.Time
			p.queueRow(s.sql["now"], nil, &now)
			if err := p.flush(ctx); err != nil {
				return err
			}
			there := false
			p.Queue(s.sql["triage"], cleanText(t.Fingerprint), string(t.Status), micros(t.For), t.Count, cleanText(t.Version), t.Actor, cleanText(t.Reason), timestamp(now)).
				Exec(func(tag pgconn.CommandTag) error { there = tag.RowsAffected() > 0; return nil })
			if err := p.flush(ctx); err != nil {
				return err
			}
			if !there {
				return rule.NoErrorGroup(t.Fingerprint)
			}
			s.queueEvent(p.Batch, store.Event{Subject: "error/" + cleanText(t.Fingerprint), Name: name, Actor: t.Actor, Reason: t.Reason}, now)
			return nil
		})
	})
}
