package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/jobkind"
	"github.com/holdfastdev/holdfast/kind/execjob"
	"github.com/holdfastdev/holdfast/kind/httpjob"
	"github.com/holdfastdev/holdfast/store"
)

// enqueuerOf returns the enqueuer of a store, the same for a server and for a command. It enforces the enqueue rates of owners, and checks and completes
// drafts of built-in kinds before they are stored.
func enqueuerOf(s store.Store, names httpjob.Dependencies) holdfast.Enqueuer {
	limits := engine.NewLimits(s, nil)
	return jobkind.Preparing(limits.Limited(s), prepareBuiltIn(names))
}

// prepareBuiltIn returns a function that checks and completes a draft of a built-in kind. Drafts of other kinds pass unchanged.
func prepareBuiltIn(names httpjob.Dependencies) func(d *holdfast.Draft) error {
	return func(d *holdfast.Draft) error { return errors.Join(names.Prepare(d), execjob.Prepare(d)) }
}

// httpDependencies parses the setting http-dependencies: host=name pairs.
func httpDependencies(list []string) (httpjob.Dependencies, error) {
	names := make(httpjob.Dependencies)
	for _, text := range list {
		host, name, _ := strings.Cut(text, "=")
		names[strings.TrimSpace(host)] = strings.TrimSpace(name)
	}
	if err := names.Check(); err != nil {
		return nil, &usageError{fmt.Errorf("--http-dependencies: %w", err)}
	}
	return names, nil
}

// registerKinds registers the built-in kinds with the engine.
func (s *serverProcess) registerKinds() error {
	allow, err := networks(s.set.List("http-allow"))
	if err != nil {
		return &usageError{fmt.Errorf("--http-allow: %w", err)}
	}
	cfg := httpjob.Config{Allow: allow, Hosts: s.set.List("http-hosts"), Dependencies: s.httpNames, Log: s.log}
	for _, text := range s.set.List("http-ports") {
		port, err := strconv.ParseUint(text, 10, 16)
		switch {
		case text == "*":
			cfg.AnyPort = true
		case err != nil || port == 0:
			return &usageError{fmt.Errorf("--http-ports: %.20q is not a port: give numbers, or * for all", text)}
		default:
			cfg.Ports = append(cfg.Ports, uint16(port))
		}
	}
	if err := httpjob.Register(s.engine, cfg); err != nil {
		return &usageError{err}
	}
	return s.registerPrograms()
}
