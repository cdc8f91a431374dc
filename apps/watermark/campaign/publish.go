package campaign

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/store"
)

// Publish publishes a campaign: one job for each token, in one transaction with the campaign, so that it is published as a whole or not at all. A campaign that is published
// already is returned as it is, and nothing is added.
func (s *Service) Publish(ctx context.Context, owner, id string) (Campaign, error) {
	c, err := s.Campaign(ctx, owner, id)
	if err != nil {
		return Campaign{}, err
	}
	err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error { return s.publish(ctx, tx, c) })
	if err != nil {
		return Campaign{}, err
	}
	return s.Campaign(ctx, owner, id)
}

func (s *Service) publish(ctx context.Context, tx *database.Tx, c Campaign) error {
	group := holdfast.NewID()
	n, err := tx.Changed(ctx, `UPDATE watermark_campaign SET published_at = ?, job_group = ? WHERE id = ? AND published_at = 0`, database.Micros(s.cfg.Now()), group.String(), c.ID)
	if err != nil || n == 0 {
		return err
	}
	if !c.ExpiresAt.IsZero() && !s.cfg.Now().Before(c.ExpiresAt) {
		return fmt.Errorf("%w: its expiry has passed", ErrInvalid)
	}
	var tokens []string
	err = tx.Each(ctx, `SELECT id FROM watermark_token WHERE campaign = ? ORDER BY place`, []any{c.ID}, func(scan func(...any) error) error {
		id := ""
		err := scan(&id)
		tokens = append(tokens, id)
		return err
	})
	if err != nil {
		return err
	}
	if len(tokens) == 0 {
		return fmt.Errorf("%w: add a recipient first", ErrInvalid)
	}
	jobs := s.cfg.Jobs.In(tx.Tx)
	if _, err := jobs.CreateGroup(ctx, holdfast.Group{ID: group, Owner: c.Owner, Name: c.Name, Then: []holdfast.Then{continuation(c.Owner)}}); err != nil {
		return err
	}
	work := make([]Copy, len(tokens))
	for i, token := range tokens {
		work[i] = Copy{Campaign: c.ID, Token: token}
	}
	receipts, err := holdfast.EnqueueAll(ctx, jobs, work, func(d *holdfast.Draft) { d.Queue, d.Owner, d.Group = Queue, c.Owner, group })
	if err != nil {
		return err
	}
	for i, r := range receipts {
		if err := tx.Exec(ctx, `UPDATE watermark_token SET job = ? WHERE id = ?`, r.ID.String(), tokens[i]); err != nil {
			return err
		}
	}
	return jobs.SealGroup(ctx, group)
}

// Retry retries the copy of a token that has failed, by hand, and returns the token. The campaign is PROCESSING again. The error is ErrNotFound or ErrNotFailed.
func (s *Service) Retry(ctx context.Context, owner, campaign, token, actor string) (Token, error) {
	c, err := s.Campaign(ctx, owner, campaign)
	if err != nil {
		return Token{}, err
	}
	t, err := s.Token(ctx, c, token)
	if err != nil {
		return Token{}, err
	}
	if t.Status != TokenFailed {
		return t, ErrNotFailed
	}
	job, err := holdfast.ParseID(t.job)
	if err != nil {
		return t, err
	}
	_, err = s.cfg.Operator.Retry(ctx, store.Intervention{Job: job, Owner: owner, Actor: actor, Reason: "retry of a token"})
	if errors.Is(err, holdfast.ErrConflict) {
		err = ErrNotFailed // another retry was faster
	}
	return t, err
}
