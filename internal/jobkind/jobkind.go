// Package jobkind holds what the built-in kinds have in common: "http", which makes an HTTP request (package httpjob), and "exec", which runs a program that the operator
// has listed (package execjob). Their arguments come from users, so they are validated when a job is enqueued and again when it runs.
package jobkind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// Preparing returns an enqueuer that calls each function of prepare on a draft before it passes the draft on to to. A function refuses or completes drafts of its kind
// and leaves others alone.
func Preparing(to holdfast.Enqueuer, prepare ...func(*holdfast.Draft) error) holdfast.Enqueuer {
	return &prepared{to, prepare}
}

type prepared struct {
	holdfast.Enqueuer
	prepare []func(*holdfast.Draft) error
}

// Enqueue prepares all drafts before it passes on any. The error names every problem, with the number of the draft if there are several.
func (p *prepared) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	var problems []error
	ready := slices.Clone(drafts)
	for i := range ready {
		err := p.prepareDraft(&ready[i])
		if err != nil && len(drafts) > 1 {
			err = Refuse("draft %d: %v", i, err)
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return p.Enqueuer.Enqueue(ctx, ready)
}

// CreateGroup prepares the drafts that continue the group, and creates it.
func (p *prepared) CreateGroup(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	var problems []error
	g.Then = slices.Clone(g.Then)
	for i := range g.Then {
		problems = append(problems, p.prepareDraft(&g.Then[i].Draft))
	}
	if err := errors.Join(problems...); err != nil {
		return g, err
	}
	return p.Enqueuer.CreateGroup(ctx, g)
}

func (p *prepared) prepareDraft(d *holdfast.Draft) error {
	for _, prepare := range p.prepare {
		if err := prepare(d); err != nil {
			return err
		}
	}
	return nil
}

// Read decodes arguments strictly. An unknown member is refused, because its author expects an effect that it does not have.
func Read(name string, args json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the JSON value")
		}
	}
	if err != nil {
		return Refuse("the arguments of kind %s: %s", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// Refuse returns an ErrInvalid with the message, which should say what to do.
func Refuse(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
