package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Enqueue makes the drafts durable, all or none. It names the jobs itself before it first asks, so that it can tell, when an answer was lost,
// whether they were written.
func (s *Store) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	if len(drafts) > MostDrafts {
		return nil, invalid("%d drafts at once: send at most %d, or a stream of lines", len(drafts), MostDrafts)
	}
	if len(drafts) == 0 {
		return []holdfast.Receipt{}, ctx.Err()
	}
	ids, text, err := nameAll(drafts)
	if err != nil {
		return nil, err
	}
	for begun, try := time.Now(), 0; ; try++ {
		receipts, err := s.enqueue(ctx, text, len(drafts))
		if ids != nil && errors.Is(err, holdfast.ErrInvalid) && strings.Contains(err.Error(), errChosenID.Message) {
			if text, err = keyAll(drafts, ids); err != nil {
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
			return s.resolve(ctx, drafts, named, err)
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

// nameAll gives every job its id, and writes all of them down as they travel.
func nameAll(drafts []holdfast.Draft) (ids []holdfast.ID, text []byte, err error) {
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
		if text, err = appendDraft(text, &drafts[i], ids[i]); err != nil {
			return nil, nil, invalid("draft %d cannot be sent: %v", i+1, err)
		}
	}
	return ids, append(text, ']'), nil
}

// keyAll writes drafts down for a key that may not choose ids: the id that this call would have chosen becomes the idempotency key, so that the call can
// still be repeated. What the caller named itself stays refused.
func keyAll(drafts []holdfast.Draft, ids []holdfast.ID) (text []byte, err error) {
	text = append(text, '[')
	for i, d := range drafts {
		if !d.ID.IsZero() {
			return nil, errChosenID
		}
		if d.IdempotencyKey == "" {
			d.IdempotencyKey = "call/" + ids[i].String()
		}
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = appendDraft(text, &d, holdfast.ID{}); err != nil {
			return nil, invalid("draft %d cannot be sent: %v", i+1, err)
		}
	}
	return append(text, ']'), nil
}

var (
	bulkPath   = Prefix + EnqueueBulk.Path + "?letter=true"
	bulkHeader = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
)

// enqueue sends drafts once.
func (s *Store) enqueue(ctx context.Context, text []byte, n int) ([]holdfast.Receipt, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	answer, err := s.c.send(ctx, EnqueueBulk.Method, bulkPath, bulkHeader, text)
	if err != nil {
		return nil, err
	}
	if receipts, ok := readReceipts(answer, n); ok {
		return receipts, nil
	}
	var out BulkOut
	if err := UnmarshalLoose(answer, &out); err != nil {
		return nil, unreadableAnswer(err)
	}
	return each(out.Receipts, func(r Receipt) holdfast.Receipt { return holdfast.Receipt(r) }), nil
}

// resolve finds out what became of a call whose answer was lost and that conflicts when it is repeated. It was written if a job is there that this
// call alone has named; then each draft is there too, or has met its twin.
func (s *Store) resolve(ctx context.Context, asked, named []holdfast.Draft, conflict error) ([]holdfast.Receipt, error) {
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
	for _, i := range twins { // each meets its twin once more
		_, text, err := nameAll(named[i : i+1])
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

// Gather makes a group durable.
func (s *Store) Gather(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	return ask(ctx, s, StoreGather, newGroupOf(g), once)
}

// Seal says that a group has all its members.
func (s *Store) Seal(ctx context.Context, group holdfast.ID) error {
	return order(ctx, s, StoreSeal, Which{group}, again)
}
