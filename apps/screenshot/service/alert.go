package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

// An Alert says when operators are notified about retries. With a threshold of 0 they are not.
type Alert struct {
	Percent int    `json:"failedRetryPercent"` // of the retries of the last hour failed
	Webhook string `json:"webhook"`            // is called, at most once an hour
}

const (
	alertEvery  = time.Minute
	alertWithin = time.Hour
	alertLeast  = 10 // retries: a rate of fewer says nothing
)

// Alert returns when operators are notified.
func (s *Service) Alert(ctx context.Context) (a Alert, err error) {
	text := ""
	err = s.cfg.DB.One(ctx, `SELECT value FROM screenshot_setting WHERE name = 'alert'`, nil, &text)
	if errors.Is(err, database.ErrNoRow) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal([]byte(text), &a)
}

// SetAlert sets when operators are notified.
func (s *Service) SetAlert(ctx context.Context, a Alert) error {
	if a.Percent < 0 || a.Percent > 100 {
		return invalid("failedRetryPercent", "it is %d: use 1 to 100, or 0 for no alert", a.Percent)
	}
	if a.Percent > 0 {
		if _, err := s.cfg.Guard.Check(a.Webhook); err != nil {
			return invalid("webhook", "%v", err)
		}
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		return tx.Exec(ctx, `INSERT INTO screenshot_setting (name, value) VALUES ('alert', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, string(text))
	})
}

// A RetryRate says whether the retries of shots helped.
type RetryRate struct {
	Attempt  int `json:"attempt"` // the number of the retry: 1 is the first one after the first attempt
	Complete int `json:"complete"`
	Failed   int `json:"failed"`
}

// RetryRates returns how retries ended in all processes, by their number, for shots that were created within a time.
func (s *Service) RetryRates(ctx context.Context, within time.Duration) ([]RetryRate, error) {
	all, err := s.cfg.Operator.Analytics(ctx, within)
	if err != nil {
		return nil, explain(err)
	}
	var list []RetryRate
	for _, r := range all.Retries {
		if !isShot(r.Kind) || r.Number < 1 || r.Number > maxAttempt {
			continue
		}
		for len(list) < r.Number {
			list = append(list, RetryRate{Attempt: len(list) + 1})
		}
		list[r.Number-1].Complete += r.Complete
		list[r.Number-1].Failed += r.Again
	}
	return list, nil
}

// An Alarm is the job that calls the webhook of operators.
type Alarm struct {
	URL     string `json:"url"`
	Percent int    `json:"percent"` // of the retries failed
	Retries int    `json:"retries"`
}

// Kind returns the kind of the job.
func (Alarm) Kind() string { return "screenshot.alert" }

// watch is a duty: it notifies operators when too many retries fail, at most once an hour, in however many processes it runs.
func (s *Service) watch(ctx context.Context) error {
	a, err := s.Alert(ctx)
	if err != nil || a.Percent == 0 {
		return err
	}
	rates, err := s.RetryRates(ctx, alertWithin)
	if err != nil {
		return err
	}
	failed, all := 0, 0
	for _, r := range rates {
		failed, all = failed+r.Failed, all+r.Failed+r.Complete
	}
	if all < alertLeast || failed*100 < a.Percent*all {
		return nil
	}
	hour := time.Now().UTC().Truncate(time.Hour).Format(time.RFC3339)
	_, err = holdfast.Enqueue(ctx, s.jobs, Alarm{a.Webhook, failed * 100 / all, all}, func(d *holdfast.Draft) {
		d.Queue, d.UniqueKey, d.UniqueDone = QueueHooks, "alert/"+hour, true
	})
	return err
}

// callAlarm calls the webhook of operators. It is signed with the secret of the service, which is the one of an organisation without a name.
func (s *Service) callAlarm(ctx context.Context, job *engine.Job[Alarm]) error {
	return s.post(ctx, job.ID, job.Args.URL, "", map[string]any{
		"type": "screenshot.retries_fail", "timestamp": time.Now().UTC(),
		"data": map[string]any{"failedRetryPercent": job.Args.Percent, "retries": job.Args.Retries, "message": fmt.Sprintf("%d %% of %d retries in the last hour failed", job.Args.Percent, job.Args.Retries)},
	})
}

// post sends a webhook, signed after Standard Webhooks. The id is the same in all attempts of its job.
func (s *Service) post(ctx context.Context, job holdfast.ID, to, owner string, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return failure.NeverRetry(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return failure.NeverRetry(err)
	}
	id, at := "msg_"+job.String(), strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+signHook(s.HookSecret(owner), id, at, body))
	answer, err := s.cfg.Guard.Do(r, 0)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode >= 300 {
		return failure.NewHTTPError(answer.StatusCode, answer.Header, nil)
	}
	return nil
}
