package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/notice"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A Hook is the job that calls the webhook of a shot that has ended.
type Hook struct {
	Job        holdfast.ID `json:"job"`
	Generation int         `json:"generation"`
	URL        string      `json:"url"`
}

// Kind returns the kind of the job.
func (Hook) Kind() string { return "screenshot.webhook" }

const (
	hookTimeout  = 30 * time.Second
	hookAttempts = 8
)

// hooksOf returns the webhooks of shots that have ended. Each end is called once, in however many processes the duty runs: its idempotency key says so.
func (s *Service) hooksOf(ctx context.Context, events []store.Event) (drafts []holdfast.Draft, err error) {
	for i := range events {
		e := &events[i]
		if !isShot(e.Kind) || e.Name != store.EventComplete && !endsWithout(e.Name) {
			continue
		}
		job, err := s.jobs.Job(ctx, e.Job)
		if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r, err := requestOf(&job)
		if err != nil || r.Webhook == "" {
			continue // a damaged job has no webhook that could be read
		}
		d, err := holdfast.NewDraft(Hook{Job: e.Job, Generation: e.Generation, URL: r.Webhook})
		if err != nil {
			return nil, err
		}
		d.Queue, d.Owner, d.IdempotencyKey = QueueHooks, job.Owner, fmt.Sprintf("webhook/%s/%d", e.Job, e.Generation)
		drafts = append(drafts, d)
	}
	return drafts, nil
}

func (s *Service) registerHooks(e *engine.Engine) {
	options := engine.KindOptions{
		Timeout: hookTimeout, Classify: failure.Chain(failure.ByHTTPStatus(), failure.DefaultRule),
		Policy: failure.Policy{MaxAttempts: hookAttempts, Backoff: failure.Exponential{Base: 5 * time.Second, Factor: 4, Cap: time.Hour}},
	}
	engine.Handle(e, s.callHook, options)
	engine.Handle(e, s.callAlarm, options)
	engine.Handle(e, s.callReceiver, options)
}

// callHook sends the shot as it is now, signed after Standard Webhooks. The id is the same in all attempts.
func (s *Service) callHook(ctx context.Context, job *engine.Job[Hook]) error {
	v, err := s.Job(ctx, job.Owner, job.Args.Job)
	if err != nil {
		return failure.NeverRetry(err)
	}
	return s.hooks.Call(ctx, job.ID.String(), job.Owner, job.Args.URL, notice.HookMessage{Type: "screenshot.ended", Timestamp: time.Now().UTC(), Data: v})
}

// HookSecret returns the secret that signs the webhooks of an organisation, in the form of Standard Webhooks.
func (s *Service) HookSecret(owner string) string { return s.hooks.SecretOf(owner) }
