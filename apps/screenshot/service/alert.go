package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/internal/notice"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

// An Alert says when operators are notified about retries. With a threshold of 0 they are not.
type Alert struct {
	Percent int    `json:"failedRetryPercent"` // of the retries of the last hour failed
	Webhook string `json:"webhook"`            // is called, at most once an hour
	Mail    string `json:"mail"`               // addresses that get a mail then, separated by commas
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
	if a.Percent > 0 && a.Webhook == "" && a.Mail == "" {
		return invalid("webhook", "give a webhook, or mail addresses in mail")
	}
	if a.Webhook != "" {
		if _, err := s.cfg.Guard.Check(a.Webhook); err != nil {
			return invalid("webhook", "%v", err)
		}
	}
	if a.Mail != "" {
		if err := notice.CheckAddress(a.Mail); err != nil {
			return invalid("mail", "%v", err)
		}
		if s.cfg.Mailer == nil {
			return invalid("mail", "this process sends no mail: set MAIL_SERVER, or leave mail out")
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
		if !isShot(r.Kind) || r.Number < 1 || r.Number > maxAttempt || r.Complete+r.Again == 0 {
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

// An Alarm is the job that tells operators: by a webhook or by mail.
type Alarm struct {
	URL     string `json:"url,omitempty"`
	Mail    string `json:"mail,omitempty"`
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
	for way, alarm := range map[string]Alarm{"webhook": {URL: a.Webhook}, "mail": {Mail: a.Mail}} {
		if alarm == (Alarm{}) {
			continue
		}
		alarm.Percent, alarm.Retries = failed*100/all, all
		_, bad := holdfast.Enqueue(ctx, s.jobs, alarm, func(d *holdfast.Draft) {
			d.Queue, d.UniqueKey, d.UniqueDone = QueueHooks, "alert/"+way+"/"+hour, true
		})
		err = errors.Join(err, bad)
	}
	return err
}

// callAlarm tells operators. Webhooks are signed with the secret of the service, which is the one of an organisation without a name.
func (s *Service) callAlarm(ctx context.Context, job *engine.Job[Alarm]) error {
	a := &job.Args
	text := fmt.Sprintf("%d %% of %d retries of screenshots in the last hour failed.", a.Percent, a.Retries)
	if a.Mail == "" {
		return s.hooks.Call(ctx, job.ID.String(), "", a.URL, notice.HookMessage{Type: "screenshot.retries_fail", Timestamp: time.Now().UTC(), Data: map[string]any{
			"failedRetryPercent": a.Percent, "retries": a.Retries, "message": text,
		}})
	}
	if s.cfg.Mailer == nil {
		return failure.Throttled(failure.WithCode(errNoMailer, code.SystemError), noMailerWait)
	}
	return s.cfg.Mailer.Send(ctx, job.ID.String(), notice.Letter{To: a.Mail, Subject: "Retries of screenshots fail", Text: text + "\n\nThe page Administration lists the retries by number. docs/runbook.md says what to do.\n"})
}

var errNoMailer = errors.New("this process sends no mail: set MAIL_SERVER")

// noMailerWait is how long a mail waits when this process sends none: another process may.
const noMailerWait = time.Minute
