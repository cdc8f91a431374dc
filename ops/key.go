package ops

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// Keys returns the keys, the newest first, including revoked and expired ones, without their secrets and hashes.
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

// MakeKey creates a key. text is the key itself; it is returned once and not stored.
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
			Events:  []holdfast.Event{by.event("key/"+k.ID, "made")},
		})
	}
	if err != nil {
		return apikey.Key{}, "", err
	}
	return k.Shown(), text, nil
}

// RevokeKey revokes a key. Servers refuse it within a second.
func (s *Service) RevokeKey(ctx context.Context, id string, by By) error {
	if err := by.check(); err != nil {
		return err
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	return s.updateRecord(ctx, apikey.Room, id, func(r holdfast.Record) (holdfast.Change, error) {
		var k apikey.Key
		if r.Version == 0 || json.Unmarshal(r.Body, &k) != nil {
			return holdfast.Change{}, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is no key " + shellQuoted(id) + ": list them with 'holdfast keys'"}
		}
		if !k.RevokedAt.IsZero() {
			return holdfast.Change{}, nil
		}
		k.RevokedAt = now.UTC()
		var err error
		r.Body, err = json.Marshal(k)
		return holdfast.Change{Records: []holdfast.Record{r}, Events: []holdfast.Event{by.event("key/"+id, "revoked")}}, err
	})
}
