package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/kind"
	"github.com/holdfastdev/holdfast/kind/call"
	"github.com/holdfastdev/holdfast/kind/program"
)

// builtIn are the kinds that a server runs by itself.
var builtIn = []string{call.Kind, program.Kind}

// takesIn is who takes drafts in beside a store, the same in a server and in a verb: owners are kept to their rate, and drafts of built-in kinds are
// looked at before they are kept.
func takesIn(s holdfast.Store, taxonomy *failure.Taxonomy) holdfast.Enqueuer {
	limits := engine.NewLimits(s, nil, taxonomy)
	return kind.Prepared(limits.Limited(s), prepareBuiltIn)
}

// prepareBuiltIn looks at a draft of a built-in kind, wherever it is kept: refuses it, or completes it.
func prepareBuiltIn(d *holdfast.Draft) error {
	for _, look := range []func(*holdfast.Draft) error{ownQueue, call.Prepare, program.Prepare} {
		if err := look(d); err != nil {
			return err
		}
	}
	return nil
}

// ownQueue puts jobs of built-in kinds into a queue named like their kind, unless they name another: whoever claims a job must know its kind, and
// workers of an application do not know these.
func ownQueue(d *holdfast.Draft) error {
	if d.Queue == "" && slices.Contains(builtIn, d.Kind) {
		d.Queue = d.Kind
	}
	return nil
}

// queues are those that the built-in workers take jobs from. A server that may run no programs leaves jobs of that kind to those that may.
func (s *site) queues() []string {
	queues := s.set.List("queues")
	if s.set.Text("exec-config") == "" && !s.set.Said("queues") {
		queues = slices.DeleteFunc(queues, func(queue string) bool { return queue == program.Kind })
	}
	return queues
}

// registerKinds lets the engine run the built-in kinds.
func (s *site) registerKinds() error {
	allow, err := networks(s.set.List("http-allow"))
	if err != nil {
		return &usageError{fmt.Errorf("--http-allow: %w", err)}
	}
	cfg := call.Config{Allow: allow, Hosts: s.set.List("http-hosts"), Log: s.log}
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
	if err := call.Register(s.engine, cfg); err != nil {
		return &usageError{err}
	}
	return s.registerPrograms()
}
