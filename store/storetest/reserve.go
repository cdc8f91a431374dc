package storetest

import (
	"errors"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// delivery is a draft as the notifier makes it.
func delivery() holdfast.Draft {
	return holdfast.Draft{Kind: "holdfast.webhook", Queue: "holdfast", Owner: "subscription/" + holdfast.NewID().String(), Args: raw(`{"events":[1]}`)}
}

// reservedNames change a draft to have one name that is reserved by Holdfast.
var reservedNames = []func(*holdfast.Draft){
	func(d *holdfast.Draft) { d.Kind = "holdfast.webhook" },
	func(d *holdfast.Draft) { d.Kind = "Holdfast.mail" },
	func(d *holdfast.Draft) { d.Queue = "holdfast" },
	func(d *holdfast.Draft) { d.Queue = "HOLDFAST" },
	func(d *holdfast.Draft) { d.Owner = "subscription/x" },
	func(d *holdfast.Draft) { d.Owner = "Subscription/" },
	func(d *holdfast.Draft) { *d = delivery() },
}

func (s *scene) expectReserved(err error) {
	s.Helper()
	s.expectError(err, holdfast.ErrInvalid)
	if err != nil && !strings.Contains(err.Error(), "reserved") {
		s.Errorf("the refusal does not say why: %v", err)
	}
}

var reserveLaws = []law{
	{"no insert path accepts a job with the reserved names of deliveries", func(s *scene) {
		for _, change := range reservedNames {
			d := draft()
			change(&d)
			_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{draft(), d})
			s.expectReserved(err)
			s.expectReserved(s.Store.Apply(s.ctx, store.Change{Enqueue: []holdfast.Draft{d}}))
			_, err = s.Store.CreateGroup(s.ctx, holdfast.Group{Then: []holdfast.Then{{Draft: d}}})
			s.expectReserved(err)
		}
		_, err := s.Store.CreateGroup(s.ctx, holdfast.Group{Owner: "subscription/x", Then: []holdfast.Then{{Draft: draft()}}})
		s.expectReserved(err)
		s.expectJobs(0)
	}},
	{"a caller's transaction does not accept them either", func(s *scene) {
		tx, end := s.Begin()
		_, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{delivery()})
		s.expectReserved(err)
		s.must(end(false))
		s.expectJobs(0)
	}},
	{"no job can be moved to the queue of deliveries", func(s *scene) {
		dead, waits := s.fail(), s.enqueue()
		_, err := s.tryEdit(waits, toQueue("holdfast"))
		s.expectReserved(err)
		r := step(holdfast.NewID(), dead.ID)
		r.Queue = "Holdfast"
		_, err = s.Store.Redrive(s.ctx, r)
		s.expectReserved(err)
	}},
	{"a change accepts deliveries, and nothing else, in its own list", func(s *scene) {
		s.must(s.Store.Apply(s.ctx, store.Change{Deliver: []holdfast.Draft{delivery()}, Enqueue: []holdfast.Draft{draft()}}))
		s.expectJobs(2)
		for _, change := range []func(*holdfast.Draft){
			func(d *holdfast.Draft) { d.Kind = "mail" }, func(d *holdfast.Draft) { d.Queue = "default" }, func(d *holdfast.Draft) { d.Owner = "" }, func(d *holdfast.Draft) { d.Args = raw("{") },
		} {
			d := delivery()
			change(&d)
			s.expectError(s.Store.Apply(s.ctx, store.Change{Deliver: []holdfast.Draft{d}}), holdfast.ErrInvalid)
		}
		s.expectJobs(2)
	}},
	{"the content and the queue of a delivery cannot be changed", func(s *scene) {
		d := delivery()
		d.ID = holdfast.NewID()
		s.must(s.Store.Apply(s.ctx, store.Change{Deliver: []holdfast.Draft{d}}))
		for _, change := range []editOption{withPatch(`{"events":[2]}`), replaceArgs(`{"events":[2]}`), toQueue("default")} {
			_, err := s.tryEdit(d.ID, change)
			s.expectError(err, holdfast.ErrConflict)
		}
		s.edit(d.ID, toPriority(3))
		leases, err := s.Store.Claim(s.ctx, store.Claim{Worker: "w", Queues: []string{"holdfast"}, Limit: 1, Start: 1, Lease: longAgo})
		s.must(err)
		same(s, "claimed", ids(leases), []holdfast.ID{d.ID})
		s.settle(fails(leases[0], "GONE"))
		for _, change := range []func(*store.Redrive){func(r *store.Redrive) { r.Patch = raw(`{"events":[2]}`) }, func(r *store.Redrive) { r.Queue = "default" }} {
			r := step(holdfast.NewID(), d.ID)
			change(&r)
			answers, err := s.Store.Redrive(s.ctx, r)
			s.must(err)
			if !errors.Is(answers[0], holdfast.ErrConflict) || !strings.Contains(answers[0].Error(), "is a delivery") {
				s.Errorf("a redrive that changes a delivery is answered with %v", answers[0])
			}
		}
		s.expectState(d.ID, holdfast.Failed)
		s.redrive(step(holdfast.NewID(), d.ID))
		same(s, "arguments", string(s.job(d.ID).Args), `{"events":[1]}`)
	}},
}
