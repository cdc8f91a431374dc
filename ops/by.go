package ops

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// By is who makes a change, why, and in which HTTP request. It is recorded with the change.
type By struct {
	Actor   string // the person or program; required
	Reason  string
	Request string
}

// check refuses a missing actor and names that are reserved for engines.
func (b By) check() error {
	if b.Actor == "" {
		return invalid("no actor: name the person or program that makes the change")
	}
	if breaker.IsSystem(b.Actor) {
		return invalid("an actor named %.60q: the name is reserved for engines, whose actions are not in the audit log; give the name of a person or program", b.Actor)
	}
	return nil
}

// event returns the event that records the change.
func (b By) event(subject, name string) holdfast.Event {
	return holdfast.Event{Subject: subject, Name: name, Actor: b.Actor, Reason: b.Reason, Request: b.Request}
}
