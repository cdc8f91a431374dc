package main

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// browserHold is how long the hold of a change of the breaker lasts, if the process that placed it does not live to see the next change.
const browserHold = 10 * time.Minute

// breakerChanged applies the breaker of the browsers to all shots. Each shot has the host of its page as its dependency, so the breaker itself holds only shots without a
// page. While it is open no shot is claimed; while it recovers, one at a time.
func (a *app) breakerChanged(ctx context.Context, dependency string, t breaker.Transition) {
	if dependency != code.Browsers {
		return
	}
	hold := store.Hold{Queue: service.Queue, Source: store.SourceHandler, For: browserHold, Actor: "screenshot", Reason: "the browsers do not work: " + t.Why}
	var err error
	switch t.To {
	case breaker.Closed:
		err = a.jobs.Resume(ctx, hold)
	case breaker.Open:
		err = a.jobs.Pause(ctx, hold)
	default:
		hold.AtMost, hold.Reason = 1, "the browsers are tried again"
		err = a.jobs.Pause(ctx, hold)
	}
	if err != nil {
		a.log.Error("the hold of the browsers cannot be changed", "event", "browser_hold_failed", "error", err.Error())
	}
}
