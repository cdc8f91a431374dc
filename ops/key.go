package ops

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// Keys lists the keys, the newest first, also those that were revoked or have expired. Nobody sees a secret or its hash.
func (s *Service) Keys(ctx context.Context) ([]apikey.Key, error) {
	records, err := s.store.Records(ctx, apikey.Room)
	if err != nil {
		return nil, err
	}
	keys := []apikey.Key{}
	for _, r := range records {
		var k apikey.Key
		if json.Unmarshal(r.Body, &k) == nil && k.ID == r.Name {
			keys = append(keys, k.Shown())
		}
	}
	slices.SortFunc(keys, func(a, b apikey.Key) int {
		if n := b.CreatedAt.Compare(a.CreatedAt); n != 0 {
			return n
		}
		return strings.Compare(a.ID, b.ID)
	})
	return keys, nil
}

// MakeKey makes a key. Its text is told this once and kept nowhere.
func (s *Service) MakeKey(ctx context.Context, o apikey.Order, by By) (k apikey.Key, text string, err error) {
	if err = by.check(); err == nil {
		err = o.Check()
	}
	if err != nil {
		return apikey.Key{}, "", err
	}
	now, err := s.now(ctx)
	if err != nil {
		return apikey.Key{}, "", err
	}
	k, text = apikey.Make(o, now)
	body, err := json.Marshal(k)
	if err == nil {
		err = s.store.Keep(ctx, holdfast.Change{
			Records: []holdfast.Record{{Room: apikey.Room, Name: k.ID, Body: body}},
			Events:  []holdfast.Event{by.says("key/"+k.ID, "made")},
		})
	}
	if err != nil {
		return apikey.Key{}, "", err
	}
	return k.Shown(), text, nil
}

// RevokeKey ends a key. Servers refuse it within a second.
func (s *Service) RevokeKey(ctx context.Context, id string, by By) error {
	if err := by.check(); err != nil {
		return err
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	return s.keep(ctx, apikey.Room, id, func(r holdfast.Record) (holdfast.Change, error) {
		var k apikey.Key
		if r.Version == 0 || json.Unmarshal(r.Body, &k) != nil {
			return holdfast.Change{}, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is no key " + quoted(id) + ": see 'holdfast keys'"}
		}
		if !k.RevokedAt.IsZero() {
			return holdfast.Change{}, nil
		}
		k.RevokedAt = now.UTC()
		var err error
		r.Body, err = json.Marshal(k)
		return holdfast.Change{Records: []holdfast.Record{r}, Events: []holdfast.Event{by.says("key/"+id, "revoked")}}, err
	})
}
