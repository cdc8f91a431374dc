package ops

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// Keys returns the keys, the newest first, including revoked and expired ones, without their secrets and hashes.
func (s *Service) Keys(ctx context.Context) ([]apikey.Key, error) {
	records, err := s.store.Records(ctx, apikey.Namespace)
	if err != nil {
		return nil, err
	}
	keys := []apikey.Key{}
	for _, r := range records {
		var k apikey.Key
		if json.Unmarshal(r.Body, &k) == nil && k.ID == r.Name {
			keys = append(keys, k.Redacted())
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

// CreateKey creates a key. text is the key itself; it is returned once and not stored.
func (s *Service) CreateKey(ctx context.Context, o apikey.Request, by Actor) (k apikey.Key, text string, err error) {
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
	k, text = apikey.New(o, now)
	body, err := json.Marshal(k)
	if err == nil {
		err = s.store.Apply(ctx, store.Change{
			Records: []store.Record{{Namespace: apikey.Namespace, Name: k.ID, Body: body}},
			Events:  []store.Event{by.event("key/"+k.ID, "made")},
		})
	}
	if err != nil {
		return apikey.Key{}, "", err
	}
	return k.Redacted(), text, nil
}

// RevokeKey revokes a key. Servers refuse it within a second.
func (s *Service) RevokeKey(ctx context.Context, id string, by Actor) error {
	if err := by.check(); err != nil {
		return err
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	return s.updateRecord(ctx, apikey.Namespace, id, func(r store.Record) (store.Change, error) {
		var k apikey.Key
		if r.Version == 0 || json.Unmarshal(r.Body, &k) != nil {
			return store.Change{}, &holdfast.Error{Err: holdfast.ErrNotFound, Message: "there is no key " + shellQuoted(id) + ": list them with 'holdfast keys'"}
		}
		if !k.RevokedAt.IsZero() {
			return store.Change{}, nil
		}
		k.RevokedAt = now.UTC()
		var err error
		r.Body, err = json.Marshal(k)
		return store.Change{Records: []store.Record{r}, Events: []store.Event{by.event("key/"+id, "revoked")}}, err
	})
}
