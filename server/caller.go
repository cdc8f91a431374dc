package server

import (
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A Caller is the authenticated sender of a request.
type Caller struct {
	Key     string       // id of its key; empty without a key
	Name    string       // name of the key
	Scope   apikey.Scope // scope of the key
	Owner   string       // owner that the key is bound to; empty: not bound
	Queues  []string     // queues that a worker's key is bound to; empty: all
	Kinds   []string     // kinds that a worker's key is bound to; empty: all
	Request string       // id of the request
}

// actor is the actor in stories and in the audit log. A caller with a key is named by its key; the name that the request gives is put before it. No caller
// can have the name of an engine, because the audit log omits what engines do.
func (c Caller) actor(given string) string {
	switch {
	case c.Key == "" && given != "":
		return given
	case c.Key == "":
		return "local"
	case given != "" && !strings.EqualFold(given, c.Name) && !breaker.IsSystem(given):
		return given + " (key " + c.Name + ")"
	}
	return c.Name
}

// by returns actor, reason and request id of an action.
func (c Caller) by(w api.Word) ops.Actor {
	return ops.Actor{Name: c.actor(w.Actor), Reason: w.Reason, Request: c.Request}
}

// on returns an intervention on one job.
func (c Caller) on(job holdfast.ID, w api.Word) store.Intervention {
	return store.Intervention{Job: job, Owner: c.Owner, Actor: c.actor(w.Actor), Reason: w.Reason, Request: c.Request}
}
