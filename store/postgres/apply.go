package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Apply applies a change in one transaction, all or none. After a lost answer it does not repeat: if the first attempt committed, its own record
// versions would refuse the second.
func (s *Store) Apply(ctx context.Context, c store.Change) error {
	c.Place, c.Lift, c.Deposits = slices.Clone(c.Place), slices.Clone(c.Lift), slices.Clone(c.Deposits) // CheckChange fills in fields of these
	if err := sqltext.CheckChange(&c); err != nil {
		return err
	}
	k := &changeCall{s: s, c: &c}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	err := s.withRetries(ctx, "store the change", false, func(ctx context.Context) error {
		err := s.transact(ctx, s.work, func(p *pipeline) error { return k.write(ctx, p) })
		return s.explainDuplicate(ctx, s.work, k.entries, err)
	})
	if err != nil {
		return err
	}
	if len(k.fresh) > 0 {
		s.announceEnqueued(k.fresh)
	}
	if slices.ContainsFunc(c.Records, func(r store.Record) bool { return r.Namespace == lane.NamespaceWeights }) {
		s.planner.weights.Expire()
	}
	if len(c.Lift) > 0 || len(c.Place) > 0 || slices.ContainsFunc(c.Deposits, func(d store.Deposit) bool { return d.Tokens > 0 }) {
		s.hub.wake([]string{allQueues}, false)
	}
	return nil
}

// A changeCall is one call of Keep in progress.
type changeCall struct {
	s       *Store
	c       *store.Change
	entries []entry
	fresh   []entry // the entries that were new
	now     time.Time
	refused error
}

// prepare checks the drafts and finds their lanes, before anything is locked.
func (k *changeCall) prepare(ctx context.Context) (err error) {
	if len(k.c.Enqueue)+len(k.c.Deliver) == 0 {
		return nil
	}
	if k.entries, err = k.s.prepare(ctx, k.s.work, k.c.Enqueue, rule.Drafts); err != nil {
		return err
	}
	deliver, err := k.s.prepare(ctx, k.s.work, k.c.Deliver, rule.Deliveries)
	if err != nil {
		return err
	}
	k.entries = append(k.entries, deliver...)
	return k.s.size.check(ctx, k.s.beside, k.s.sql)
}

// write applies the change. All transactions lock rows in the same order: records by namespace and name, then holds by key, then the rest. If a record has
// changed or a job does not exist, it returns an error and nothing is applied.
func (k *changeCall) write(ctx context.Context, p *pipeline) error {
	s, c := k.s, k.c
	k.refused, k.fresh = nil, nil
	stale := make([]error, len(c.Records)) // by the given order: the first conflict is reported
	order := make([]int, len(c.Records))   // lock order of the records
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.Records[a].Namespace, c.Records[b].Namespace), cmp.Compare(c.Records[a].Name, c.Records[b].Name))
	})
	for _, i := range order {
		s.keepRecord(p, c.Records[i], &stale[i])
	}
	p.queueRow(s.sql["now"], nil, &k.now)
	if err := p.flush(ctx); err != nil {
		return err
	}
	if k.refused = cmp.Or(stale...); k.refused != nil {
		return k.refused
	}
	s.changeHolds(p, c, k.now)
	for _, l := range c.Listen {
		s.listenTo(p, l)
	}
	for _, a := range c.Artifacts {
		s.keepArtifact(p, a, k.now, &k.refused)
	}
	for _, e := range c.Events {
		k.queueEvent(p, e)
	}
	if len(c.Artifacts) > 0 || slices.ContainsFunc(c.Events, func(e store.Event) bool { return !e.Job.IsZero() }) {
		if err := p.flush(ctx); err != nil || k.refused != nil {
			return cmp.Or(err, k.refused)
		}
	}
	if len(k.entries) == 0 {
		return nil
	}
	var err error
	k.fresh, err = s.enqueueIn(ctx, p, k.entries)
	return err
}

// queueEvent queues one event.
func (k *changeCall) queueEvent(p *pipeline, e store.Event) {
	if e.Job.IsZero() {
		e.Generation = 0
		k.s.queueEvent(p.Batch, e, k.now)
		return
	}
	p.Queue(k.s.sql["job_event_add"], e.Job.String(), timestamp(k.now), e.Name, e.Actor, cleanText(e.Reason), cleanText(e.Request)).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			k.refused = rule.NoJob(e.Job)
		}
		return nil
	})
}

// keepRecord queues the compare-and-set of one record: create, update or delete it if its version is still the given one.
func (s *Store) keepRecord(p *pipeline, r store.Record, refused *error) {
	stale := rule.RecordChanged(r.Namespace, r.Name)
	kept := func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			*refused = stale
		}
		return nil
	}
	switch {
	case r.Body == nil && r.Version == 0:
		var version int
		p.queueRows(s.sql["find_record"], []any{r.Namespace, r.Name}, []any{&version}, func() error { *refused = stale; return nil })
	case r.Body == nil:
		p.Queue(s.sql["delete_record"], r.Namespace, r.Name, r.Version).Exec(kept)
	case r.Version == 0:
		p.Queue(s.sql["insert_record"], r.Namespace, r.Name, string(r.Body)).Exec(kept)
	default:
		p.Queue(s.sql["update_record"], r.Namespace, r.Name, r.Version, string(r.Body)).Exec(kept)
	}
}

// listenTo queues the replacement of the events that a listener wants.
func (s *Store) listenTo(p *pipeline, l store.Listener) {
	events := textArray(l.Events)
	p.Queue(s.sql["listen_drop"], l.Name, events)
	p.Queue(s.sql["listen_add"], l.Name, events)
}
