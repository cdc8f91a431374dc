package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/kind"
	"github.com/holdfastdev/holdfast/kind/execjob"
	"github.com/holdfastdev/holdfast/kind/httpjob"
)

// takesIn is who takes drafts in beside a store, the same in a server and in a verb: owners are kept to their rate, and drafts of built-in kinds are
// looked at before they are kept.
func takesIn(s holdfast.Store, names httpjob.Dependencies) holdfast.Enqueuer {
	limits := engine.NewLimits(s, nil)
	return kind.Prepared(limits.Limited(s), prepareBuiltIn(names))
}

// prepareBuiltIn looks at a draft of a built-in kind, wherever it is kept: refuses it, or completes it.
func prepareBuiltIn(names httpjob.Dependencies) func(d *holdfast.Draft) error {
	return func(d *holdfast.Draft) error { return errors.Join(names.Prepare(d), execjob.Prepare(d)) }
}

// httpDependencies are the names that operators gave to hosts.
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

// registerKinds lets the engine run the built-in kinds.
func (s *site) registerKinds() error {
	allow, err := networks(s.set.List("http-allow"))
	if err != nil {
		return &usageError{fmt.Errorf("--http-allow: %w", err)}
	}
	cfg := httpjob.Config{Allow: allow, Hosts: s.set.List("http-hosts"), Dependencies: s.names, Log: s.log}
	for _, text := range s.set.List("http-ports") {
		port, err := strconv.ParseUint(text, 10, 16)
		switch {
		case text == "*":
			cfg.AnyPort = true
		case err != nil || port == 0:
			return &usageError{fmt.Errorf("--http-ports: %.20q is no port: give numbers, or * for all", text)}
		default:
			cfg.Ports = append(cfg.Ports, uint16(port))
		}
	}
	if err := httpjob.Register(s.engine, cfg); err != nil {
		return &usageError{err}
	}
	return s.registerPrograms()
}
