package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

const (
	followEvery = 2 * time.Second
	followPage  = 200
	gatherFor   = time.Minute // failures of a campaign are gathered so long, so that many of them are one mail
)

// Duties returns what an engine does for this service beside the work.
func (s *Service) Duties() []engine.Duty {
	return []engine.Duty{
		{Name: "failed-copies", Interval: followEvery, Run: s.followFailures},
		{Name: "old-uploads", Interval: time.Hour, Run: s.SweepUploads},
	}
}

const noticesKept = 30 * 24 * time.Hour

// Retention returns how long ended jobs are kept. Those of copies and searches are kept: the state of a token and the result of a search are in them.
func Retention() []store.RetentionRule {
	return []store.RetentionRule{
		{Name: "copies", Kind: Copy{}.Kind(), For: store.Forever},
		{Name: "searches", Kind: Find{}.Kind(), For: store.Forever},
		{Name: "notices", For: noticesKept},
	}
}

// followFailures is a duty: it notes each copy that has failed for good, and mails its owner. The number of the last event that it has handled moves in the transaction that notes
// the failures, so each failure is noted once, in however many processes the duty runs.
func (s *Service) followFailures(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := s.followPage(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return s.mailExhausted(ctx)
}

func (s *Service) followPage(ctx context.Context) (more bool, err error) {
	after := int64(0)
	err = s.cfg.DB.One(ctx, `SELECT seq FROM watermark_followed WHERE name = 'failures'`, nil, &after)
	if err != nil {
		return false, err
	}
	feed, err := s.cfg.Jobs.Feed(ctx, after, followPage)
	if err != nil || feed.Next == after {
		return false, err
	}
	var list []exhausted
	for i := range feed.Events {
		e := &feed.Events[i]
		if e.Kind != (Copy{}).Kind() || e.Name != store.EventFailed && e.Name != store.EventCancelled {
			continue
		}
		job, err := s.cfg.Jobs.Job(ctx, e.Job)
		if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
			continue
		}
		if err != nil {
			return false, err
		}
		if x, ok := exhaustedOf(job, e); ok {
			list = append(list, x)
		}
	}
	err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		moved, err := tx.Changed(ctx, `UPDATE watermark_followed SET seq = ? WHERE name = 'failures' AND seq = ?`, feed.Next, after)
		if err != nil || moved == 0 { // another process was faster
			return err
		}
		return s.noteExhausted(ctx, tx, list)
	})
	return err == nil, err
}

// An exhausted is a copy that has failed for good in one generation of its job.
type exhausted struct {
	job             holdfast.ID
	generation      int
	campaign, token string
	code, said      string
}

// exhaustedOf returns what a job that has failed says. Failures that were taken over from another program are not new: ok is false. event may be nil.
func exhaustedOf(job holdfast.Job, event *store.Event) (x exhausted, ok bool) {
	var args Copy
	if json.Unmarshal(job.Args, &args) != nil {
		return x, false
	}
	x = exhausted{job: job.ID, generation: job.Generation, campaign: args.Campaign, token: args.Token, code: code.SystemError, said: code.Of(code.SystemError).Message}
	if f := job.LastFailure; f != nil {
		x.code, x.said = code.Of(f.Code).Name, detailOf(f)
	}
	if event != nil && event.Generation != job.Generation { // it was retried by hand meanwhile
		x.generation, x.code, x.said = event.Generation, code.Of(event.Code).Name, event.Message
	}
	return x, args.Failure == "" || x.generation > 1
}

func (s *Service) noteExhausted(ctx context.Context, tx *database.Tx, list []exhausted) error {
	for _, x := range list {
		err := tx.Exec(ctx, `INSERT INTO watermark_exhausted (job, generation, campaign, token, code, said, noted_at, mail) VALUES (?, ?, ?, ?, ?, ?, ?, '') ON CONFLICT (job, generation) DO NOTHING`,
			x.job.String(), x.generation, x.campaign, x.token, x.code, x.said, database.Micros(s.cfg.Now()))
		if err != nil {
			return err
		}
	}
	return nil
}

// noteFailed notes all copies of a settled campaign that have failed: events that were deleted before the duty had read them do not keep a failure from its mail.
func (s *Service) noteFailed(ctx context.Context, c Campaign) error {
	jobs, err := s.jobsOf(ctx, c)
	if err != nil {
		return err
	}
	var list []exhausted
	for _, job := range jobs {
		if job.State != holdfast.Failed && job.State != holdfast.Cancelled {
			continue
		}
		if x, ok := exhaustedOf(job, nil); ok {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error { return s.noteExhausted(ctx, tx, list) })
}

// mailExhausted mails the failures that were noted, all of a campaign in one mail.
func (s *Service) mailExhausted(ctx context.Context) error {
	due := map[string]time.Time{}
	err := s.cfg.DB.Each(ctx, `SELECT campaign, MIN(noted_at) FROM watermark_exhausted WHERE mail = '' GROUP BY campaign`, nil, func(scan func(...any) error) error {
		id, at := "", int64(0)
		err := scan(&id, &at)
		due[id] = database.Time(at)
		return err
	})
	if err != nil {
		return err
	}
	var all []error
	for id, first := range due {
		c, err := s.campaign(ctx, id)
		if err != nil {
			all = append(all, err) // the others get their mails
			continue
		}
		if c.State != Processing || s.cfg.Now().Sub(first) >= gatherFor {
			all = append(all, s.mailFailuresOf(ctx, c))
		}
	}
	return errors.Join(all...)
}

// mailFailuresOf enqueues the mails about the failures of a campaign that were noted and not mailed yet, in the transaction that marks them as mailed.
func (s *Service) mailFailuresOf(ctx context.Context, c Campaign) error {
	addresses, err := s.contacts(ctx, c.Owner)
	if err != nil {
		return err
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		batch := holdfast.NewID().String()
		n, err := tx.Changed(ctx, `UPDATE watermark_exhausted SET mail = ? WHERE campaign = ? AND mail = ''`, batch, c.ID)
		if err != nil || n == 0 || len(addresses) == 0 {
			return err
		}
		var names, lines []string
		err = tx.Each(ctx, `SELECT t.name, x.code, x.said FROM watermark_exhausted x JOIN watermark_token t ON t.id = x.token WHERE x.mail = ? ORDER BY t.place LIMIT ?`, []any{batch, listedFailures}, func(scan func(...any) error) error {
			var name, code, said string
			err := scan(&name, &code, &said)
			names, lines = append(names, name), append(lines, fmt.Sprintf("%s: %s (%s)", name, shorten(said), code))
			return err
		})
		if err != nil || len(names) == 0 {
			return err
		}
		_, err = s.cfg.Jobs.In(tx.Tx).Enqueue(ctx, s.failureMails(c, addresses, n, names, lines))
		return err
	})
}

const maxSaid = 400 // characters of a failure in a mail

// shorten returns the beginning of a text.
func shorten(text string) string {
	if r := []rune(text); len(r) > maxSaid {
		return string(r[:maxSaid]) + "…"
	}
	return text
}

func (s *Service) failureMails(c Campaign, addresses []string, n int, names, lines []string) (drafts []holdfast.Draft) {
	if n > len(lines) {
		lines = append(lines, fmt.Sprintf("and %d more", n-len(lines)))
	}
	subject := fmt.Sprintf("The copy of %s in campaign %q has failed", names[0], c.Name)
	if n > 1 {
		subject = fmt.Sprintf("%d copies of campaign %q have failed", n, c.Name)
	}
	text := fmt.Sprintf("All retries are used up, or a retry cannot help:\n\n%s\n\nThe page of the campaign has a button to retry each of them.\n%s", strings.Join(lines, "\n"), s.linkTo(c))
	for _, to := range addresses {
		drafts = append(drafts, mustDraft(Letter{c.Owner, to, subject, text}, c.Owner))
	}
	return drafts
}

// linkTo returns a line with the address of a campaign's page; empty if the service does not know its own address.
func (s *Service) linkTo(c Campaign) string {
	if s.cfg.Public == "" {
		return ""
	}
	return s.cfg.Public + "/campaigns/" + c.ID + "\n"
}

// mustDraft returns the draft of a notice. Its arguments are text and numbers, which always marshal.
func mustDraft(args holdfast.Args, owner string) holdfast.Draft {
	d, err := holdfast.NewDraft(args)
	if err != nil {
		panic(err)
	}
	d.Queue, d.Owner = QueueNotice, owner
	return d
}
