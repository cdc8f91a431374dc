package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/notice"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// The types of retry events, as the specification names them.
const (
	RetryScheduled = "RetryScheduled"
	RetryStarted   = "RetryStarted"
	RetrySucceeded = "RetrySucceeded"
	RetryFailed    = "RetryFailed"
)

// RetryEventTypes are all types of retry events.
var RetryEventTypes = []string{RetryScheduled, RetryStarted, RetrySucceeded, RetryFailed}

// A RetryEvent is an event of the retries of a shot.
type RetryEvent struct {
	Type     string      `json:"type"`
	Job      holdfast.ID `json:"jobId,omitzero"`
	At       time.Time   `json:"at"`
	Attempt  int         `json:"attempt,omitempty"`
	DelayMS  int64       `json:"delayMs,omitempty"`    // with RetryScheduled
	Duration int64       `json:"durationMs,omitempty"` // with RetrySucceeded and RetryFailed
	Error    string      `json:"error,omitempty"`      // code, with RetryScheduled and RetryFailed
	Actor    string      `json:"actor,omitempty"`      // who asked for a manual retry

	line  string // name of the line of the story that it is made of
	token int    // of that line
}

// RetryEvents returns the events of the retries in the story of a shot.
func RetryEvents(id holdfast.ID, story []ops.StoryLine) []RetryEvent {
	list := []RetryEvent{}
	retried := false // the attempt that comes or runs is a retry
	for _, line := range story {
		e := RetryEvent{Job: id, At: line.At.UTC(), Attempt: line.Attempt, Duration: line.Duration.Milliseconds(), line: line.Name, token: line.Token}
		if line.Code != "" {
			e.Error = code.Of(line.Code).Name
		}
		switch line.Name {
		case store.EventRetry:
			if retried {
				failed := e
				failed.Type = RetryFailed
				list = append(list, failed)
			}
			e.Type, e.DelayMS, e.Duration, retried = RetryScheduled, max(0, line.DueAt.Sub(line.At).Milliseconds()), 0, true
		case manualRetry, redriven:
			e.Type, e.Actor, retried = RetryScheduled, line.Actor, true
		case store.EventProcessing:
			e.Type = RetryStarted
		case store.EventComplete:
			e.Type = RetrySucceeded
		case store.EventFailed:
			e.Type = RetryFailed
		}
		if e.Type != "" && retried {
			list = append(list, e)
		}
	}
	return list
}

// Names of events that the store has in words.
const (
	manualRetry = "manual retry"
	redriven    = "redrive"
)

// mayBeRetry reports whether an event of the feed can stand for retry events.
func mayBeRetry(e *store.Event) bool {
	if !isShot(e.Kind) {
		return false
	}
	switch e.Name {
	case store.EventRetry, manualRetry, redriven:
		return true
	case store.EventProcessing:
		return e.Token > 1
	case store.EventComplete, store.EventFailed:
		return e.Attempt > 1 || e.Generation > 1
	}
	return false
}

// RetryEventsOf returns the retry events that an event of the feed stands for. There may be two: a retry that fails may be followed by another one.
func (s *Service) RetryEventsOf(ctx context.Context, e *store.Event) (list []RetryEvent, err error) {
	if !mayBeRetry(e) {
		return nil, nil
	}
	story, err := s.cfg.Operator.Story(ctx, e.Job)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		return nil, nil
	}
	for _, r := range RetryEvents(e.Job, story) {
		if r.line == e.Name && r.token == e.Token {
			list = append(list, r)
		}
	}
	return list, err
}

// A Publisher appends retry events to a stream. An event whose id the stream has already is not appended again.
type Publisher interface {
	Publish(ctx context.Context, id, owner string, e RetryEvent) error
}

// A RetryCall is the job that tells a receiver about a retry event: an endpoint of an organisation or, without one, the stream.
type RetryCall struct {
	Endpoint string     `json:"endpoint,omitempty"`
	ID       string     `json:"id"` // of the event: the same for all receivers, and no other service has it
	Event    RetryEvent `json:"event"`
}

// Kind returns the kind of the job.
func (RetryCall) Kind() string { return "screenshot.event" }

// callsOf returns the jobs that tell receivers about the retry events of a page of the feed. They are enqueued in the transaction that moves the position in the feed, so
// each receiver is notified of each event by one job.
func (s *Service) callsOf(ctx context.Context, events []store.Event) (drafts []holdfast.Draft, err error) {
	receivers := map[string][]Endpoint{} // by owner
	for i := range events {
		e := &events[i]
		if !mayBeRetry(e) {
			continue
		}
		if _, known := receivers[e.Owner]; !known {
			if receivers[e.Owner], err = s.Endpoints(ctx, e.Owner); err != nil {
				return nil, err
			}
			if s.cfg.Stream != nil {
				receivers[e.Owner] = append(receivers[e.Owner], Endpoint{})
			}
		}
		if len(receivers[e.Owner]) == 0 {
			continue
		}
		list, err := s.RetryEventsOf(ctx, e)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			for _, to := range receivers[e.Owner] {
				if len(to.Events) > 0 && !slices.Contains(to.Events, r.Type) {
					continue
				}
				d, err := holdfast.NewDraft(RetryCall{Endpoint: to.ID, ID: fmt.Sprintf("%s-%d-%s", e.Job, e.Seq, r.Type), Event: r})
				if err != nil {
					return nil, err
				}
				d.Queue, d.Owner, d.IdempotencyKey = QueueHooks, e.Owner, strings.Join([]string{"event", to.ID, fmt.Sprint(e.Seq), r.Type}, "/")
				drafts = append(drafts, d)
			}
		}
	}
	return drafts, nil
}

var errNoReceiver = errors.New("this process publishes no stream: set NATS_URL")

// callReceiver is the handler of retry calls.
func (s *Service) callReceiver(ctx context.Context, job *engine.Job[RetryCall]) error {
	a := &job.Args
	if a.Endpoint == "" {
		if s.cfg.Stream == nil {
			return failure.Throttled(failure.WithCode(errNoReceiver, code.SystemError), noStreamWait)
		}
		return s.cfg.Stream.Publish(ctx, a.ID, job.Owner, a.Event)
	}
	to, err := s.endpoint(ctx, job.Owner, a.Endpoint)
	if errors.Is(err, errNoEndpoint) {
		return failure.NeverRetry(failure.Benign(err)) // it was removed
	}
	if err != nil {
		return err
	}
	return s.hooks.Call(ctx, a.ID, job.Owner, to.URL, notice.HookMessage{Type: a.Event.Type, Timestamp: a.Event.At, Data: a.Event})
}

// noStreamWait is how long an event waits when this process has no stream: another process may have one.
const noStreamWait = time.Minute
