package server

import (
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
)

// A Caller is who asks, as far as the server knows.
type Caller struct {
	Key     string       // the id of its key; empty where no key is asked for
	Name    string       // of the key
	Scope   apikey.Scope // what it may do
	Owner   string       // bound to this owner; empty: to nobody
	Queues  []string     // a worker bound to these queues; empty: to all
	Kinds   []string     // a worker bound to these kinds; empty: to all
	Request string       // the id of this request
}

// actor is the name in the story. A caller with a key is named by its key; the name that the request gives stands before it. No caller can be named like an
// engine, because the audit log leaves out what engines do.
func (c Caller) actor(said string) string {
	switch {
	case c.Key == "" && said != "":
		return said
	case c.Key == "":
		return "local"
	case said != "" && !strings.EqualFold(said, c.Name) && !breaker.IsSystem(said):
		return said + " (key " + c.Name + ")"
	}
	return c.Name
}

// by is who does something, and why, as it is kept.
func (c Caller) by(w api.Word) ops.By {
	return ops.By{Actor: c.actor(w.Actor), Reason: w.Reason, Request: c.Request}
}

// on is a word on one job.
func (c Caller) on(job holdfast.ID, w api.Word) holdfast.Intervention {
	return holdfast.Intervention{Job: job, Owner: c.Owner, Actor: c.actor(w.Actor), Reason: w.Reason, Request: c.Request}
}
