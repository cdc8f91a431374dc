package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfastdev/holdfast"
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
	t.fingerprint.quote(name)
	t.job.id(n.Job)
	t.dependency.quote(clean(f.Dependency))
	t.version.quote(clean(n.Version))
}

// queue writes them: last of all, because many settlements may want the same rows at once.
func (t *troubles) queue(p *pipe, sql map[string]string, now time.Time) {
	if len(t.groups) == 0 {
		return
	}
	var fingerprint, code, category, message, detail, failures column
	for _, name := range slices.Sorted(maps.Keys(t.groups)) {
		g := t.groups[name]
		fingerprint.quote(name)
		code.quote(clean(g.first.Code))
		category.some(clean(g.first.Category))
		message.some(clean(g.first.Message))
		detail.some(clean(g.first.Detail))
		failures.int(g.failures)
	}
	at := stamp(now)
	p.Queue(sql["error_count"], append([]any{at}, literals([]column{fingerprint, code, category, message, detail, failures})...)...)
	p.Queue(sql["error_turn"], at, fingerprint.String(), t.fingerprint.String(), t.version.String())
	p.Queue(sql["error_tally"], append([]any{at}, literals([]column{t.fingerprint, t.job, t.dependency, t.version})...)...)
}

// Triage keeps a person's word on an error group.
func (s *Store) Triage(ctx context.Context, t holdfast.Triage) error {
	if err := t.Check(); err != nil {
		return err
	}
	if err := checkPerson(t.Actor, t.Reason, "", ""); err != nil {
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
				return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no error group %.80q", t.Fingerprint)}
			}
			s.tell(p.Batch, holdfast.Event{Subject: "error/" + clean(t.Fingerprint), Name: name, Actor: t.Actor, Reason: t.Reason}, now)
			return nil
		})
	})
}
