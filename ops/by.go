package ops

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// By is who wants something, why, and in which request it was asked for. It is kept with what was done.
type By struct {
	Actor   string // who: required
	Reason  string
	Request string
}

// check refuses a word that is nobody's.
func (b By) check() error {
	if b.Actor == "" {
		return invalid("nobody is named as the actor: say who decides")
	}
	if breaker.IsSystem(b.Actor) {
		return invalid("an actor named %.60q: that is how engines are named, and what engines do is not in the audit trail; give the name of a person", b.Actor)
	}
	return nil
}

// says is the line of a story that tells what was done.
func (b By) says(subject, name string) holdfast.Event {
	return holdfast.Event{Subject: subject, Name: name, Actor: b.Actor, Reason: b.Reason, Request: b.Request}
}
