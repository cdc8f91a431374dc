// Package trouble brings a store into trouble, for tests of what people see: jobs in every state, failures of several kinds, an open
// breaker, a paused queue, groups, schedules and people's words about all of it. Everything goes the way it would in earnest, through
// failure.Decide and the store's own verbs; only nobody waits.
package trouble

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

// A Scene is a store in trouble.
type Scene struct {
	Store holdfast.Store
	Desk  *ops.Service

	Failed   []holdfast.ID // dead letters of convert: GW_5XX
	Broken   holdfast.ID   // a dead letter of fetch whose error text is long
	Clash    holdfast.ID   // a dead letter whose unique key another job holds
	Retrying []holdfast.ID
	Waiting  []holdfast.ID // claimable, behind the breaker
	Running  []holdfast.ID
	Complete []holdfast.ID
	Partial  holdfast.ID // a group
	Open     holdfast.ID // a group that is under way

	say func(column, text string) string
}

// Make fills an empty store. Texts that people or other programs choose go through say, under the name of their column, so that a test can
// put what it likes into each; nil leaves them as they are.
func Make(ctx context.Context, store holdfast.Store, say func(column, text string) string) (*Scene, error) {
	if say == nil {
		say = func(_, text string) string { return text }
	}
	s := &Scene{Store: store, Desk: ops.New(store, ops.Config{}), say: say}
	for _, act := range []func(context.Context) error{s.workers, s.calm, s.outage, s.refused, s.clash, s.groups, s.later, s.under, s.people} {
		if err := act(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// workers has two of them report.
func (s *Scene) workers(ctx context.Context) error {
	for _, one := range []holdfast.Presence{
		{Worker: s.worker("a"), Queues: []string{"convert", "default"}, Kinds: []string{"convert", "mail"}, Depends: map[string]string{"convert": "gateway"}, Version: "1.4.0", Slots: 4, For: time.Hour},
		{Worker: s.worker("b"), Queues: []string{"fetch"}, Kinds: []string{"fetch"}, Version: "1.3.2", Slots: 2, For: time.Hour},
	} {
		if err := s.Store.Present(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scene) worker(name string) string { return s.say("worker", "worker-"+name+"/1") }

// calm is what went well.
func (s *Scene) calm(ctx context.Context) (err error) {
	s.Complete, err = s.enqueue(ctx, 12, holdfast.Draft{Kind: "mail", Tags: []string{s.say("tag", "weekly")}})
	if err != nil {
		return err
	}
	return s.settle(ctx, "default", len(s.Complete), failure.Outcome{Result: json.RawMessage(`{"sent":9007199254740993}`), Took: 120 * time.Millisecond})
}

// outage is a gateway that answers 503: most jobs are dead letters, some wait to try again, some were never tried.
func (s *Scene) outage(ctx context.Context) (err error) {
	down := failure.With(failure.On(failure.HTTPError(503, "", errors.New(s.say("message", "gateway answered 503 for document 4711"))), "gateway"), "body", s.say("detail", "upstream connect error"))
	if s.Failed, err = s.enqueue(ctx, 9, holdfast.Draft{Kind: "convert", Queue: "convert", MaxAttempts: 1, Dependency: "gateway"}); err != nil {
		return err
	}
	if err := s.settle(ctx, "convert", len(s.Failed), failure.Outcome{Err: down, Took: 900 * time.Millisecond}); err != nil {
		return err
	}
	if s.Retrying, err = s.enqueue(ctx, 4, holdfast.Draft{Kind: "convert", Queue: "convert", Dependency: "gateway"}); err != nil {
		return err
	}
	if err := s.settle(ctx, "convert", len(s.Retrying), failure.Outcome{Err: down, Took: 2 * time.Second, Roll: 0.5}); err != nil {
		return err
	}
	s.Waiting, err = s.enqueue(ctx, 5, holdfast.Draft{Kind: "convert", Queue: "convert", Dependency: "gateway"})
	return err
}

// refused is what no second attempt can help: a page that is gone, and one whose story is long.
func (s *Scene) refused(ctx context.Context) error {
	gone, err := s.enqueue(ctx, 2, holdfast.Draft{Kind: "fetch", Queue: "fetch"})
	if err != nil {
		return err
	}
	if err := s.settle(ctx, "fetch", len(gone), failure.Outcome{Err: failure.HTTPError(404, "", errors.New("the page is gone")), Took: time.Second}); err != nil {
		return err
	}
	long, err := s.enqueue(ctx, 1, holdfast.Draft{Kind: "fetch", Queue: "fetch", MaxAttempts: 1})
	if err != nil {
		return err
	}
	s.Broken = long[0]
	text := s.say("message", "the parser gave up")
	for len(text) < 4096 {
		text += " at line 1 of a document that does not end"
	}
	return s.settle(ctx, "fetch", 1, failure.Outcome{Event: failure.Panicked, Err: errors.New(text), Stack: s.say("stack", "goroutine 1 [running]:\nmain.fetch()"), Took: time.Second})
}

// clash is a dead letter whose place another job has taken.
func (s *Scene) clash(ctx context.Context) error {
	first, err := s.enqueue(ctx, 1, holdfast.Draft{Kind: "fetch", Queue: "fetch", MaxAttempts: 1, UniqueKey: s.say("unique_key", "front-page")})
	if err != nil {
		return err
	}
	s.Clash = first[0]
	if err := s.settle(ctx, "fetch", 1, failure.Outcome{Err: errors.New("connection reset by peer"), Took: time.Second}); err != nil {
		return err
	}
	_, err = s.enqueue(ctx, 1, holdfast.Draft{Kind: "fetch", Queue: "fetch", UniqueKey: s.say("unique_key", "front-page"), Delay: time.Hour})
	return err
}

// groups are two: one ended partly well, one is under way.
func (s *Scene) groups(ctx context.Context) error {
	partial, err := s.Store.Gather(ctx, holdfast.Group{Name: s.say("group", "november campaign"), Owner: s.say("owner", "ada")})
	if err != nil {
		return err
	}
	s.Partial = partial.ID
	if _, err := s.enqueue(ctx, 3, holdfast.Draft{Kind: "watermark", Queue: "pictures", Group: partial.ID}); err != nil {
		return err
	}
	if err := s.settle(ctx, "pictures", 3, failure.Outcome{Took: time.Second}); err != nil {
		return err
	}
	if _, err := s.enqueue(ctx, 1, holdfast.Draft{Kind: "watermark", Queue: "pictures", Group: partial.ID, MaxAttempts: 1}); err != nil {
		return err
	}
	if err := s.settle(ctx, "pictures", 1, failure.Outcome{Err: failure.WithCode(errors.New("the picture is not one"), "VALIDATION_ERROR"), Took: time.Second}); err != nil {
		return err
	}
	if err := s.Store.Seal(ctx, partial.ID); err != nil {
		return err
	}
	if _, err := s.Store.Conclude(ctx, 10); err != nil {
		return err
	}
	open, err := s.Store.Gather(ctx, holdfast.Group{Name: "december campaign"})
	if err != nil {
		return err
	}
	s.Open = open.ID
	_, err = s.enqueue(ctx, 4, holdfast.Draft{Kind: "watermark", Queue: "pictures", Group: open.ID})
	return err
}

// later is what waits for its time, and what will never run.
func (s *Scene) later(ctx context.Context) error {
	if _, err := s.enqueue(ctx, 3, holdfast.Draft{Kind: "mail", Delay: 2 * time.Hour, Owner: s.say("owner", "ada")}); err != nil {
		return err
	}
	stopped, err := s.enqueue(ctx, 1, holdfast.Draft{Kind: "mail", Queue: "bulk"})
	if err != nil {
		return err
	}
	_, err = s.Desk.Cancel(ctx, holdfast.Intervention{Job: stopped[0], Actor: s.say("actor", "ada"), Reason: s.say("reason", "sent by hand")})
	return err
}

// under is what workers have in their hands.
func (s *Scene) under(ctx context.Context) error {
	var err error
	if s.Running, err = s.enqueue(ctx, 2, holdfast.Draft{Kind: "fetch", Queue: "fetch", Args: json.RawMessage(`{"url":"https://example.org/"}`)}); err != nil {
		return err
	}
	_, err = s.Store.Claim(ctx, holdfast.Claim{Worker: s.worker("b"), Queues: []string{"fetch"}, Limit: 2, Start: 2, Lease: time.Hour})
	return err
}

// people have said what they think of it.
func (s *Scene) people(ctx context.Context) error {
	by := ops.By{Actor: s.say("actor", "ada"), Reason: s.say("reason", "the vendor is on it")}
	if err := s.Desk.OpenBreaker(ctx, "gateway", by); err != nil {
		return err
	}
	if err := s.Desk.Pause(ctx, holdfast.Hold{Queue: "bulk", Actor: by.Actor, Reason: by.Reason}); err != nil {
		return err
	}
	groups, _, err := s.Desk.ErrorGroups(ctx, holdfast.ErrorFilter{})
	if err != nil || len(groups) == 0 {
		return errors.Join(err, fmt.Errorf("%d error groups", len(groups)))
	}
	if err := s.Desk.Triage(ctx, holdfast.Triage{Fingerprint: groups[0].Fingerprint, Actor: by.Actor, Reason: by.Reason}); err != nil {
		return err
	}
	for _, plan := range []schedule.Schedule{
		{Name: "nightly-report", Cron: "30 2 * * *", Zone: "Europe/Berlin", Draft: holdfast.Draft{Kind: "report"}},
		{Name: "sweep", Every: 15 * time.Minute, Draft: holdfast.Draft{Kind: "sweep", Tags: []string{s.say("tag", "weekly")}}},
	} {
		if _, err := s.Desk.SetSchedule(ctx, plan, by); err != nil {
			return err
		}
	}
	return s.Desk.PauseSchedule(ctx, "sweep", 0, by)
}

// enqueue makes n jobs of a draft.
func (s *Scene) enqueue(ctx context.Context, n int, like holdfast.Draft) ([]holdfast.ID, error) {
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = like
		if drafts[i].Owner == "" {
			drafts[i].Owner = s.say("owner", []string{"ada", "grace", "edsger"}[i%3])
		}
		if len(drafts[i].Args) == 0 {
			args, err := json.Marshal(map[string]any{"document": s.say("args", fmt.Sprintf("%s-%d.pdf", like.Kind, i)), "account": json.Number("9007199254740993"), "": "an empty key"})
			if err != nil {
				return nil, err
			}
			drafts[i].Args = args
		}
	}
	receipts, err := s.Store.Enqueue(ctx, drafts)
	ids := make([]holdfast.ID, len(receipts))
	for i := range receipts {
		ids[i] = receipts[i].ID
	}
	return ids, err
}

// settle claims n jobs of a queue and ends their attempts as the outcome says.
func (s *Scene) settle(ctx context.Context, queue string, n int, o failure.Outcome) error {
	leases, err := s.Store.Claim(ctx, holdfast.Claim{Worker: s.worker("a"), Queues: []string{queue}, Limit: n, Start: n, Lease: time.Hour})
	if err != nil {
		return err
	}
	if len(leases) != n {
		return fmt.Errorf("claimed %d of %d jobs in queue %s", len(leases), n, queue)
	}
	settlements := make([]holdfast.Settlement, n)
	for i, lease := range leases {
		settlements[i] = failure.Decide(failure.Rules{}, lease, o).Settlement(lease, o)
		settlements[i].Version, settlements[i].Queue = s.say("version", "1.4.0"), lease.Queue
	}
	answers, err := s.Store.Settle(ctx, settlements)
	return errors.Join(append(answers, err)...)
}
