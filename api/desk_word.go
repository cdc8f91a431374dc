package api

import (
	"context"
	"errors"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// Asked names the request in which something is asked for.
type Asked struct {
	Request string `header:"X-Request-Id" doc:"names this request in stories and logs; one is made when it is left out"`
}

// Said is a word on something that needs no name.
type Said struct {
	Asked
	Body Word
}

// ByName names something, in the path.
type ByName struct {
	Name string `path:"name" doc:"escape what is not a letter or digit, a slash too (%2F)"`
}

// OnNamed is a word on something that has a name.
type OnNamed struct {
	ByName
	Said
}

// Dropped is a word on what is deleted: such requests have no body.
type Dropped struct {
	Actor  string `query:"actor" doc:"who does this, on whose key it is done"`
	Reason string `query:"reason" doc:"why, for whoever asks"`
}

// Word is what was said.
func (d Dropped) Word() Word { return Word(d) }

// DropNamed forgets something that has a name.
type DropNamed struct {
	ByName
	Asked
	Dropped
}

// Partial is part of lists that may hold what cannot be read.
type Partial struct {
	Problems []*Problem `json:"problems,omitempty" doc:"what was left out because it cannot be read"`
}

// Complain makes the list say what was left out of it, which comes as several errors in one. Any other trouble is returned.
func (p *Partial) Complain(err error) error {
	joined, several := err.(interface{ Unwrap() []error })
	if _, one := err.(*holdfast.Error); one || !several {
		return err
	}
	p.Problems = Problems(joined.Unwrap())
	return nil
}

func (p Partial) err() error { return errors.Join(Errs(p.Problems)...) }

// act does what somebody wants done. Here, as near the store, somebody must be named.
func act[In, Out any](ctx context.Context, d *Desk, r Route[In, Out], actor string, in In) (out Out, err error) {
	if actor == "" {
		return out, invalid("nobody is named as the actor: say who decides")
	}
	return call(ctx, d.c, r, in)
}

func said(by ops.By) Said { return Said{Asked{by.Request}, Word{by.Actor, by.Reason}} }

func named(name string, by ops.By) OnNamed { return OnNamed{ByName{name}, said(by)} }

func dropped(by ops.By) Dropped { return Dropped{by.Actor, by.Reason} }

func wordOn(i holdfast.Intervention) WordOn { return WordOn{Word{i.Actor, i.Reason}, i.Owner} }
