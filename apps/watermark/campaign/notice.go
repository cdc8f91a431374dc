package campaign

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

// QueueNotice is where notices wait. It is separate, so that a mail server that does not answer delays no copy.
const QueueNotice = "notices"

// A Settled is the job that the group of a campaign enqueues when it has an outcome: the store does it in the transaction of the outcome, once for each generation.
type Settled struct {
	Group      holdfast.ID         `json:"group"`
	State      holdfast.GroupState `json:"state"`
	Generation int                 `json:"generation"`
}

// Kind returns the kind of the job.
func (Settled) Kind() string { return "watermark.settled" }

// A Letter is the job that sends one mail.
type Letter struct {
	Owner   string `json:"owner"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// Kind returns the kind of the job.
func (Letter) Kind() string { return "watermark.mail" }

// A Hook is the job that calls the webhook campaign_ready of an owner.
type Hook struct {
	Owner    string    `json:"owner"`
	URL      string    `json:"url"`
	Campaign string    `json:"campaign"`
	Name     string    `json:"name"`
	State    State     `json:"state"`
	Ready    int       `json:"completed"`
	Failed   int       `json:"failed"`
	At       time.Time `json:"at"`
}

// Kind returns the kind of the job.
func (Hook) Kind() string { return "watermark.webhook" }

// Notices say how owners are reached. Fields that are nil turn their notices off; a mail without Send is kept, for the page of letters.
type Notices struct {
	Contacts func(ctx context.Context, owner string) (addresses []string, err error) // of mails
	// The id is the same in all attempts of a notice.
	Send func(ctx context.Context, id string, l Letter) error
	Call func(ctx context.Context, id string, h Hook) error
}

func (s *Service) registerNotices(e *engine.Engine) {
	options := engine.KindOptions{
		Timeout: time.Minute, Classify: failure.Chain(failure.ByHTTPStatus(), failure.DefaultRule),
		Policy: failure.Policy{MaxAttempts: 8, Backoff: failure.Exponential{Base: 5 * time.Second, Factor: 4, Cap: time.Hour}},
	}
	engine.Handle(e, s.settled, options)
	engine.Handle(e, s.send, options)
	engine.Handle(e, s.call, options)
}

// continuation is what the group of a campaign enqueues when it has an outcome.
func continuation(owner string) holdfast.Then {
	return holdfast.Then{Draft: holdfast.Draft{Kind: Settled{}.Kind(), Queue: QueueNotice, Owner: owner}}
}

// settled is the handler of outcomes. The notices become jobs in the transaction that completes this one: each exists once.
func (s *Service) settled(ctx context.Context, job *engine.Job[Settled]) error {
	c, err := s.byGroup(ctx, job.Args.Group)
	if errors.Is(err, ErrNotFound) {
		return nil // the campaign was deleted
	}
	if err != nil {
		return err
	}
	if err := s.noteFailed(ctx, c); err != nil {
		return err
	}
	state := stateOf(holdfast.Group{State: job.Args.State})
	letters, err := s.lettersOf(ctx, c, state)
	if err != nil {
		return err
	}
	var drafts []holdfast.Draft
	for n, l := range letters {
		d := mustDraft(l, c.Owner)
		d.IdempotencyKey = fmt.Sprintf("mail/%s/%d/%d", job.Args.Group, job.Args.Generation, n)
		drafts = append(drafts, d)
	}
	url, err := s.HookURL(ctx, c.Owner)
	if err != nil {
		return err
	}
	if url != "" {
		d := mustDraft(Hook{c.Owner, url, c.ID, c.Name, state, c.Members.Complete, c.Members.Failed + c.Members.Cancelled, s.cfg.Now().UTC()}, c.Owner)
		d.IdempotencyKey = fmt.Sprintf("webhook/%s/%d", job.Args.Group, job.Args.Generation)
		drafts = append(drafts, d)
	}
	if len(drafts) == 0 {
		return nil
	}
	return job.Enqueue(drafts...)
}

func (s *Service) byGroup(ctx context.Context, group holdfast.ID) (Campaign, error) {
	id := ""
	err := s.cfg.DB.One(ctx, `SELECT id FROM watermark_campaign WHERE job_group = ?`, []any{group.String()}, &id)
	if errors.Is(err, database.ErrNoRow) {
		return Campaign{}, ErrNotFound
	}
	if err != nil {
		return Campaign{}, err
	}
	return s.campaign(ctx, id)
}

const listedFailures = 50 // recipients that a mail names

// lettersOf returns the mails about an outcome: none if all copies are ready. The copies that have failed are listed in mails of their own; see followFailures.
func (s *Service) lettersOf(ctx context.Context, c Campaign, state State) (letters []Letter, err error) {
	if state != Partial && state != Failed {
		return nil, nil
	}
	addresses, err := s.contacts(ctx, c.Owner)
	if err != nil {
		return nil, err
	}
	failed := c.Members.Failed + c.Members.Cancelled
	outcome := Letter{Owner: c.Owner, Subject: fmt.Sprintf("Campaign %q is ready in part", c.Name), Text: fmt.Sprintf("%d copies are ready, %d have failed.\n%s", c.Members.Complete, failed, s.linkTo(c))}
	if state == Failed {
		outcome.Subject, outcome.Text = fmt.Sprintf("Campaign %q has failed", c.Name), fmt.Sprintf("All %d copies have failed.\n%s", failed, s.linkTo(c))
	}
	for _, outcome.To = range addresses {
		letters = append(letters, outcome)
	}
	return letters, nil
}

// contacts returns the addresses of mails to an owner; none if mails are turned off.
func (s *Service) contacts(ctx context.Context, owner string) ([]string, error) {
	if s.cfg.Notices.Contacts == nil {
		return nil, nil
	}
	return s.cfg.Notices.Contacts(ctx, owner)
}

// send is the handler of mails. Without a mail server a mail is kept instead, in the transaction that completes the job.
func (s *Service) send(ctx context.Context, job *engine.Job[Letter]) error {
	if s.cfg.Notices.Send != nil {
		return s.cfg.Notices.Send(ctx, job.ID.String(), job.Args)
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		l := job.Args
		err := tx.Exec(ctx, `INSERT INTO watermark_letter (id, owner, recipient, subject, body, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
			job.ID.String(), l.Owner, l.To, l.Subject, l.Text, database.Micros(s.cfg.Now()))
		if err != nil {
			return err
		}
		return job.CompleteIn(ctx, tx.Tx)
	})
}

// call is the handler of webhooks.
func (s *Service) call(ctx context.Context, job *engine.Job[Hook]) error {
	if s.cfg.Notices.Call == nil {
		return failure.NeverRetry(errors.New("webhooks are turned off"))
	}
	return s.cfg.Notices.Call(ctx, job.ID.String(), job.Args)
}

// A KeptLetter is a mail that was kept because there is no mail server.
type KeptLetter struct {
	To, Subject, Text string
	At                time.Time
}

// Letters returns the newest mails that were kept for an owner.
func (s *Service) Letters(ctx context.Context, owner string, limit int) (list []KeptLetter, err error) {
	err = s.cfg.DB.Each(ctx, `SELECT recipient, subject, body, created_at FROM watermark_letter WHERE owner = ? ORDER BY created_at DESC, id DESC LIMIT ?`, []any{owner, limit}, func(scan func(...any) error) error {
		var l KeptLetter
		var at int64
		err := scan(&l.To, &l.Subject, &l.Text, &at)
		l.At = database.Time(at)
		list = append(list, l)
		return err
	})
	return list, err
}

// HookURL returns the address of an owner's webhook; empty if there is none.
func (s *Service) HookURL(ctx context.Context, owner string) (url string, err error) {
	err = s.cfg.DB.One(ctx, `SELECT hook_url FROM watermark_owner WHERE owner = ?`, []any{owner}, &url)
	if errors.Is(err, database.ErrNoRow) {
		return "", nil
	}
	return url, err
}

// SetHookURL sets the address of an owner's webhook; an empty one turns it off.
func (s *Service) SetHookURL(ctx context.Context, owner, url string) error {
	url = strings.TrimSpace(url)
	if url != "" && !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") || len(url) > 2000 {
		return fmt.Errorf("%w: the address of a webhook begins with https://", ErrInvalid)
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		return tx.Exec(ctx, `INSERT INTO watermark_owner (owner, hook_url) VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET hook_url = excluded.hook_url`, owner, url)
	})
}
