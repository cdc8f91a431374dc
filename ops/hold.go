package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// A Held is a hold in force, and how much waits behind it.
type Held struct {
	holdfast.Hold
	// Behind counts the due jobs the hold stands before, up to MostCounted. It is -1 where nobody counted: of the holds
	// beyond the first hundred.
	Behind int `json:"behind"`
}

// MostCounted is where counting stops: there are that many, or more.
const MostCounted = 10_000

// mostHolds is behind how many holds the jobs are counted: each costs a question of its own.
const mostHolds = 100

// Pause holds a queue, a kind, an owner, a dependency or a tag, for a while or until it is resumed; or it lets only so much of
// it through. Held jobs stay queued and spend nothing; what is being processed goes on. Pausing again replaces the hold.
func (s *Service) Pause(ctx context.Context, h holdfast.Hold) error {
	if h.Source == holdfast.SourceBreaker {
		return breakersOwn(h)
	}
	return s.store.Pause(ctx, h)
}

// Resume lifts a hold. Lifting one that is not there is no error. A breaker's hold is the breaker's to lift.
func (s *Service) Resume(ctx context.Context, h holdfast.Hold) error {
	if h.Source == holdfast.SourceBreaker {
		return breakersOwn(h)
	}
	return s.store.Resume(ctx, h)
}

func breakersOwn(h holdfast.Hold) error {
	_, name := h.On()
	return &holdfast.Error{Kind: holdfast.ErrConflict, Message: fmt.Sprintf("the hold on %s is its breaker's, which would place it again: open or close the breaker instead", name)}
}

// Holds lists the holds in force, with how many jobs each stands before.
func (s *Service) Holds(ctx context.Context) ([]Held, error) {
	holds, err := s.store.Holds(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Held, len(holds))
	for n, hold := range holds {
		list[n] = Held{Hold: hold, Behind: -1}
		if n >= mostHolds {
			continue
		}
		if list[n].Behind, err = s.store.Behind(ctx, hold); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// covers reports whether a hold is on a job: by its queue, kind, owner, dependency or one of its tags, and by what it keeps back.
func covers(h holdfast.Hold, job holdfast.Job) bool {
	if h.Retries && job.Failures == 0 {
		return false
	}
	if scope, _ := h.On(); scope != "tag" {
		return h.Covers(nameIn(scope, job))
	}
	for _, tag := range job.Tags {
		if h.Covers(tag) {
			return true
		}
	}
	return false
}

// nameIn is what a job is called in the scope of a hold.
func nameIn(scope string, job holdfast.Job) string {
	switch scope {
	case "queue":
		return job.Queue
	case "kind":
		return job.Kind
	case "owner":
		return job.Owner
	}
	return job.Dependency
}

// flags are what names a hold on a command line.
func flags(h holdfast.Hold) string {
	scope, name := h.On()
	text := fmt.Sprintf("--%s %s", scope, quoted(name))
	if h.Source != "" && h.Source != holdfast.SourceOperator {
		text += " --source " + h.Source
	}
	return text
}

// quoted puts a name in quotes where a shell would take it apart.
func quoted(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r)
	}
	if name != "" && strings.TrimFunc(name, plain) == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
