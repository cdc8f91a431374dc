package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
)

// Enqueue makes the drafts durable, all or none. It chooses the ids of the jobs before the first call, so that a repeated call after a lost answer can be
// recognised: the store refuses ids that exist, and resolveConflict then finds out whether this call wrote them. A key that is bound to an owner cannot choose
// ids; for it the chosen ids become idempotency keys, which make the repetition safe in the same way.
func (s *Store) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	if len(drafts) > api.MostDrafts {
		return nil, api.Invalid("%d drafts in one call: send at most %d, or a stream of lines", len(drafts), api.MostDrafts)
	}
	if len(drafts) == 0 {
		return []holdfast.Receipt{}, ctx.Err()
	}
	ids, text, err := encodeWithIDs(drafts)
	if err != nil {
		return nil, err
	}
	for begun, try := time.Now(), 0; ; try++ {
		receipts, err := s.enqueue(ctx, text, len(drafts))
		if ids != nil && errors.Is(err, holdfast.ErrInvalid) && strings.Contains(err.Error(), api.ErrChosenID.Message) {
			if text, err = encodeWithKeys(drafts, ids); err != nil {
				return nil, err
			}
			ids = nil
			receipts, err = s.enqueue(ctx, text, len(drafts))
		}
		if try > 0 && ids != nil && errors.Is(err, holdfast.ErrConflict) {
			named := slices.Clone(drafts)
			for i := range named {
				named[i].ID = ids[i]
			}
			return s.resolveConflict(ctx, drafts, named, err)
		}
		wait := pauseFor(err, try)
		if err == nil || !errors.Is(err, holdfast.ErrUnavailable) || s.closed.Load() || time.Since(begun)+wait > s.c.cfg.Patience {
			return receipts, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// encodeWithIDs gives every job an id, and encodes the drafts.
func encodeWithIDs(drafts []holdfast.Draft) (ids []holdfast.ID, text []byte, err error) {
	ids = make([]holdfast.ID, len(drafts))
	size := 2
	for i := range drafts {
		size += 200 + len(drafts[i].Args)
	}
	text = append(make([]byte, 0, size), '[')
	for i := range drafts {
		if ids[i] = drafts[i].ID; ids[i].IsZero() {
			ids[i] = holdfast.NewID()
		}
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = api.AppendDraft(text, &drafts[i], ids[i]); err != nil {
			return nil, nil, api.Invalid("draft %d cannot be sent: %v", i+1, err)
		}
	}
	return ids, append(text, ']'), nil
}

// encodeWithKeys encodes drafts for a key that may not choose ids: the id that encodeWithIDs chose becomes the idempotency key, so that the call can still be repeated.
// A draft for which the caller chose the id is refused.
func encodeWithKeys(drafts []holdfast.Draft, ids []holdfast.ID) (text []byte, err error) {
	text = append(text, '[')
	for i, d := range drafts {
		if !d.ID.IsZero() {
			return nil, api.ErrChosenID
		}
		if d.IdempotencyKey == "" {
			d.IdempotencyKey = "call/" + ids[i].String()
		}
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = api.AppendDraft(text, &d, holdfast.ID{}); err != nil {
			return nil, api.Invalid("draft %d cannot be sent: %v", i+1, err)
		}
	}
	return append(text, ']'), nil
}

var (
	bulkPath   = api.Prefix + api.EnqueueBulk.Path + "?letter=true"
	bulkHeader = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
)

// enqueue sends drafts once.
func (s *Store) enqueue(ctx context.Context, text []byte, n int) ([]holdfast.Receipt, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	answer, err := s.c.send(ctx, api.EnqueueBulk.Method, bulkPath, bulkHeader, text)
	if err != nil {
		return nil, err
	}
	if receipts, ok := api.ReadReceipts(answer, n); ok {
		return receipts, nil
	}
	var out api.BulkOut
	if err := api.UnmarshalLoose(answer, &out); err != nil {
		return nil, unreadableAnswer(err)
	}
	return api.MapSlice(out.Receipts, func(r api.Receipt) holdfast.Receipt { return holdfast.Receipt(r) }), nil
}

// resolveConflict decides the result of a call whose answer was lost and whose repetition conflicts. The first call was written if a job exists whose id only
// this call has chosen. Then every draft without a key is written too, because the call is all or none, and every draft with a key was written or met an
// existing job; those are sent once more to learn its id. Otherwise the conflict is real and is returned.
func (s *Store) resolveConflict(ctx context.Context, asked, named []holdfast.Draft, conflict error) ([]holdfast.Receipt, error) {
	written := false
	receipts := make([]holdfast.Receipt, len(named))
	var twins []int
	for i := range named {
		receipts[i].ID = named[i].ID
		keyed := named[i].UniqueKey != "" || named[i].IdempotencyKey != ""
		if written && !keyed {
			continue
		}
		_, err := s.Job(ctx, named[i].ID)
		switch {
		case err == nil:
			written = written || asked[i].ID.IsZero()
		case !errors.Is(err, holdfast.ErrNotFound):
			return nil, err
		case keyed:
			twins = append(twins, i)
		}
	}
	if !written {
		return nil, conflict
	}
	for _, i := range twins { // the call returns the job that it meets
		_, text, err := encodeWithIDs(named[i : i+1])
		if err != nil {
			return nil, err
		}
		met, err := s.enqueue(ctx, text, 1)
		if err != nil {
			return nil, err
		}
		receipts[i] = met[0]
	}
	return receipts, nil
}

// CreateGroup creates a group.
func (s *Store) CreateGroup(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	return callVerb(ctx, s, api.StoreCreateGroup, api.NewGroupOf(g), sendOnce)
}

// SealGroup declares that a group has all its members.
func (s *Store) SealGroup(ctx context.Context, group holdfast.ID) error {
	return callAction(ctx, s, api.StoreSealGroup, api.Which{ID: group}, mayRepeat)
}
