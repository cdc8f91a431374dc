// Package kind holds what the kinds of jobs that need no code have in common: "http", a call of an address (package httpjob), and "exec", a program
// that the operator listed (package execjob). Their arguments are data, so they are looked at before a job is accepted, and again before it is run.
package kind

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

// Prepared answers with an enqueuer that has each draft looked at first: refused, or completed, by those who know its kind. Other kinds pass as they are.
func Prepared(to holdfast.Enqueuer, by ...func(*holdfast.Draft) error) holdfast.Enqueuer {
	return &prepared{to, by}
}

type prepared struct {
	holdfast.Enqueuer
	by []func(*holdfast.Draft) error
}

// Enqueue names all that is wrong with any of the drafts before it passes on the first.
func (p *prepared) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	var problems []error
	ready := slices.Clone(drafts)
	for i := range ready {
		err := p.look(&ready[i])
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

// Gather looks at what continues the group.
func (p *prepared) Gather(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	var problems []error
	g.Then = slices.Clone(g.Then)
	for i := range g.Then {
		problems = append(problems, p.look(&g.Then[i].Draft))
	}
	if err := errors.Join(problems...); err != nil {
		return g, err
	}
	return p.Enqueuer.Gather(ctx, g)
}

func (p *prepared) look(d *holdfast.Draft) error {
	for _, prepare := range p.by {
		if err := prepare(d); err != nil {
			return err
		}
	}
	return nil
}

// Read reads arguments strictly: a member that their kind does not have is refused, because whoever wrote it expects something of it.
func Read(name string, args json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after their end")
		}
	}
	if err != nil {
		return Refuse("the arguments of kind %s: %s", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// Refuse makes a refusal, which tells the reader what to do.
func Refuse(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
