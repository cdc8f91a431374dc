package service

import (
	"context"

	"github.com/holdfastdev/holdfast/store"
)

// Waits says what holds a queued shot whose time has come, for its user. It is empty if nothing does.
func (s *Service) Waits(ctx context.Context, v *Job) (string, error) {
	if v.Status != Queued || v.NextRetryAt != nil {
		return "", nil
	}
	holds, err := s.jobs.Holds(ctx)
	if err != nil {
		return "", explain(err)
	}
	for i := range holds {
		if text := waits(v, &holds[i]); text != "" {
			return text, nil
		}
	}
	return "", nil
}

// waits says what a hold means for a shot; empty: it does not concern the shot.
func waits(v *Job, h *store.Hold) string {
	until := "."
	if !h.Until.IsZero() && h.Source != store.SourceHandler {
		until = " until " + h.Until.UTC().Format("15:04:05") + " UTC."
	}
	switch {
	case h.Kind == kindOf(v.Type) && h.Source == store.SourceWindow && v.RetryCount > 0:
		return "There are no retries at this time of day" + until
	case h.Queue == Queue && h.Retries && v.RetryCount > 0:
		return "An operator has paused retries" + until
	case h.Queue == Queue && h.Source == store.SourceHandler:
		return "The browsers of the service do not work at the moment. This costs no attempt."
	case h.Queue == Queue && !h.Retries:
		return "An operator has paused all screenshots" + until
	case h.Source == store.SourceBreaker && h.Closed() && h.Dependency == dependencyOf(v.Options):
		return "The host of the page has failed repeatedly. Its screenshots wait until it answers again, which costs no attempt."
	}
	return ""
}
