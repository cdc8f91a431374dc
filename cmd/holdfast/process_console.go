package main

import (
	"context"

	"github.com/holdfastdev/holdfast/console"
)

// consoleAt is where a server has its pages for people.
const consoleAt = "/console"

// makeConsole puts the pages for people on the server, unless they are not wanted. Where keys are asked for they ask for one too.
func (s *site) makeConsole() error {
	if s.set.Text("console") == "off" {
		return nil
	}
	cfg := console.Config{
		Desk: s.desk, Prefix: consoleAt, TrustProxy: s.set.On("trust-proxy"), ReadOnly: s.set.Text("console") == "read-only", Version: thisBuild().Version,
		Policies: s.given, Log: s.log,
	}
	if s.set.Text("auth") != "off" {
		cfg.Open = s.letIn
	}
	var err error
	if s.console, err = console.New(cfg); err != nil {
		return err
	}
	return s.server.Mount(consoleAt, s.console, "/live")
}

// letIn finds out whose key it is that a visitor signs in with, and at every request whether it still is good.
func (s *site) letIn(ctx context.Context, remote, text string) (console.Visitor, error) {
	who, err := s.server.Know(ctx, remote, text)
	if err != nil {
		return console.Visitor{}, err
	}
	return console.Visitor{Name: who.Name, Scope: who.Scope, Owner: who.Owner, Ended: s.server.Life(who).Done()}, nil
}

// consoleURL is where people look, or nothing.
func (s *site) consoleURL() string {
	if s.console == nil {
		return ""
	}
	return s.url() + consoleAt + "/"
}
