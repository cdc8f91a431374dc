package client

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// act calls a route that changes something. The actor is required, as it is for every implementation of ops.Operator.
func act[In, Out any](ctx context.Context, d *Operator, r api.Route[In, Out], actor string, in In) (out Out, err error) {
	if actor == "" {
		return out, api.Invalid("no actor: name the person or program that makes the change")
	}
	return call(ctx, d.c, r, in)
}

func saidBy(by ops.Actor) api.Said {
	return api.Said{Asked: api.Asked{Request: by.Request}, Body: api.Word{Actor: by.Name, Reason: by.Reason}}
}

func onNamed(name string, by ops.Actor) api.OnNamed {
	return api.OnNamed{ByName: api.ByName{Name: name}, Said: saidBy(by)}
}

func droppedBy(by ops.Actor) api.Dropped { return api.Dropped{Actor: by.Name, Reason: by.Reason} }

func wordOn(i store.Intervention) api.WordOn {
	return api.WordOn{Word: api.Word{Actor: i.Actor, Reason: i.Reason}, Owner: i.Owner}
}
