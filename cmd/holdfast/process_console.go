package main

import (
	"context"

	"github.com/holdfastdev/holdfast/console"
)

// consolePath is the path of the console on a server.
const consolePath = "/console"

// makeConsole mounts the console on the server, unless it is off. If the server requires keys, visitors of the console sign in with one.
func (s *serverProcess) makeConsole() error {
	if s.set.Text("console") == "off" {
		return nil
	}
	cfg := console.Config{
		Operator: s.operator, Prefix: consolePath, TrustProxy: s.set.Bool("trust-proxy"), ReadOnly: s.set.Text("console") == "read-only", Version: thisBuild().Version,
		Policies: s.policy, Log: s.log,
	}
	if s.set.Text("auth") != "off" {
		cfg.Open = s.authenticate
	}
	var err error
	if s.console, err = console.New(cfg); err != nil {
		return err
	}
	return s.server.Mount(consolePath, s.console, "/live")
}

// authenticate returns the visitor to whom a key belongs. The console calls it at sign-in and at every request, so a revoked key ends the session.
func (s *serverProcess) authenticate(ctx context.Context, remote, text string) (console.Visitor, error) {
	caller, err := s.server.Authenticate(ctx, remote, text)
	if err != nil {
		return console.Visitor{}, err
	}
	return console.Visitor{Name: caller.Name, Scope: caller.Scope, Owner: caller.Owner, Ended: s.server.SessionContext(caller).Done()}, nil
}

// consoleURL is the address of the console, or empty if it is off.
func (s *serverProcess) consoleURL() string {
	if s.console == nil {
		return ""
	}
	return s.url() + consolePath + "/"
}
