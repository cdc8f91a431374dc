package ops

import (
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// Actor is who makes a change, why, and in which HTTP request. It is recorded with the change.
type Actor struct {
	Name    string // the person or program; required
	Reason  string
	Request string
}

// check refuses a missing actor and names that are reserved for engines.
func (b Actor) check() error {
	if b.Name == "" {
		return invalid("no actor: name the person or program that makes the change")
	}
	if breaker.IsSystem(b.Name) {
		return invalid("an actor named %.60q: the name is reserved for engines, whose actions are not in the audit log; give the name of a person or program", b.Name)
	}
	return nil
}

// event returns the event that records the change.
func (b Actor) event(subject, name string) store.Event {
	return store.Event{Subject: subject, Name: name, Actor: b.Name, Reason: b.Reason, Request: b.Request}
}
