package main

import (
	"context"
	"errors"

	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// An idleCamera is for commands that take no pictures.
type idleCamera struct{}

var errIdle = errors.New("this command takes no pictures")

// Take refuses.
func (idleCamera) Take(context.Context, shot.Options) (*shot.Picture, error) {
	return nil, code.New(code.BrowserUnavailable, "", errIdle)
}

// Probe refuses.
func (idleCamera) Probe(context.Context) error { return errIdle }

// Status returns nothing.
func (idleCamera) Status() browser.Status { return browser.Status{} }
