package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A HoldStatus is a hold in force, with the number of jobs that it keeps back.
type HoldStatus struct {
	store.Hold
	// Behind is the number of due jobs that the hold keeps back, up to 10,000. It is -1 if they were not counted,
	// which applies to holds beyond the first hundred.
	Behind int `json:"behind"`
}

// MaxCounted is where counting stops: there are that many, or more.
const MaxCounted = 10_000

// maxCountedHolds is the number of holds whose jobs are counted; each needs a query of its own.
const maxCountedHolds = 100

// Pause holds a queue, a kind, an owner, a dependency or a tag, for a time or until it is resumed; or it limits how many of
// its jobs run. Held jobs stay queued at no cost; running jobs continue. Pausing again replaces the hold.
func (s *Service) Pause(ctx context.Context, h store.Hold) error {
	if h.Source == store.SourceBreaker {
		return breakerHoldError(h)
	}
	return s.store.Pause(ctx, h)
}

// Resume lifts a hold. Lifting a hold that does not exist is no error. A breaker's hold is ErrConflict: change the breaker
// instead.
func (s *Service) Resume(ctx context.Context, h store.Hold) error {
	if h.Source == store.SourceBreaker {
		return breakerHoldError(h)
	}
	return s.store.Resume(ctx, h)
}

func breakerHoldError(h store.Hold) error {
	_, name := h.Scope()
	return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("the breaker of %s placed this hold and would place it again: open or close the breaker instead", name)}
}

// Holds returns the holds in force, with the number of jobs that each keeps back.
func (s *Service) Holds(ctx context.Context) ([]HoldStatus, error) {
	holds, err := s.store.Holds(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]HoldStatus, len(holds))
	for n, hold := range holds {
		list[n] = HoldStatus{Hold: hold, Behind: -1}
		if n >= maxCountedHolds {
			continue
		}
		if list[n].Behind, err = s.store.CountHeld(ctx, hold); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// maxHeldLines is the number of held lines that are listed.
const maxHeldLines = 100

// HeldLines returns the first hundred lines of order keys that a dead letter holds, the oldest job first, and whether there are more. A line continues when its dead
// letter is retried and completes, or is discarded or purged.
func (s *Service) HeldLines(ctx context.Context) (lines []store.HeldLine, more bool, err error) {
	lines, err = s.store.HeldLines(ctx, maxHeldLines+1)
	if len(lines) > maxHeldLines {
		return lines[:maxHeldLines], true, err
	}
	return lines, false, err
}

// covers reports whether a hold applies to a job: by its queue, kind, owner, dependency or one of its tags, and by its failures.
func covers(h store.Hold, job holdfast.Job) bool {
	if h.Retries && job.Failures == 0 {
		return false
	}
	if scope, _ := h.Scope(); scope != "tag" {
		return h.Covers(nameIn(scope, job))
	}
	for _, tag := range job.Tags {
		if h.Covers(tag) {
			return true
		}
	}
	return false
}

// nameIn returns the job's name in the scope of a hold.
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

// holdFlags returns the command-line flags that name a hold.
func holdFlags(h store.Hold) string {
	scope, name := h.Scope()
	text := fmt.Sprintf("--%s %s", scope, shellQuoted(name))
	if h.Source != "" && h.Source != store.SourceOperator {
		text += " --source " + h.Source
	}
	return text
}

// shellQuoted quotes a name if a shell would split or interpret it.
func shellQuoted(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r)
	}
	if name != "" && strings.TrimFunc(name, plain) == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
