package service

import (
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/ops"
)

// A RetryEvent is an event of the retries of a shot, with the names of the specification: RetryScheduled, RetryStarted, RetrySucceeded, RetryFailed.
type RetryEvent struct {
	Type     string    `json:"type"`
	At       time.Time `json:"at"`
	Attempt  int       `json:"attempt,omitempty"`
	DelayMS  int64     `json:"delayMs,omitempty"`    // with RetryScheduled
	Duration int64     `json:"durationMs,omitempty"` // with RetrySucceeded and RetryFailed
	Error    string    `json:"error,omitempty"`      // code, with RetryScheduled and RetryFailed
	Actor    string    `json:"actor,omitempty"`      // who asked for a manual retry
}

// RetryEvents returns the events of the retries in a story.
func RetryEvents(story []ops.StoryLine) []RetryEvent {
	list := []RetryEvent{}
	retried := false // the attempt that comes or runs is a retry
	for _, line := range story {
		e := RetryEvent{At: line.At.UTC(), Attempt: line.Attempt, Duration: line.Duration.Milliseconds()}
		if line.Code != "" {
			e.Error = code.Of(line.Code).Name
		}
		switch line.Name {
		case "retry":
			if retried {
				failed := e
				failed.Type = "RetryFailed"
				list = append(list, failed)
			}
			e.Type, e.DelayMS, e.Duration, retried = "RetryScheduled", max(0, line.DueAt.Sub(line.At).Milliseconds()), 0, true
		case "manual retry", "redrive":
			e.Type, e.Actor, retried = "RetryScheduled", line.Actor, true
		case "processing":
			e.Type = "RetryStarted"
		case "complete":
			e.Type = "RetrySucceeded"
		case "failed":
			e.Type = "RetryFailed"
		}
		if e.Type != "" && retried {
			list = append(list, e)
		}
	}
	return list
}
