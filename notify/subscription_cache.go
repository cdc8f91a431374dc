package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// cacheMaxAge is the maximum age of the subscriptions that a delivery uses.
const cacheMaxAge = time.Second

// A subscriptionCache caches all subscriptions as they were last read. It is safe for concurrent use.
type subscriptionCache struct {
	store Store

	mu   sync.Mutex
	read time.Time
	all  map[string]store.Record // by name
}

// readAll reads all subscriptions from the store.
func (b *subscriptionCache) readAll(ctx context.Context) ([]store.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readAllLocked(ctx)
}

func (b *subscriptionCache) readAllLocked(ctx context.Context) ([]store.Record, error) {
	records, err := b.store.Records(ctx, subscription.Namespace)
	if err != nil {
		return nil, err
	}
	b.read, b.all = time.Now(), make(map[string]store.Record, len(records))
	for _, r := range records {
		b.all[r.Name] = r
	}
	return records, nil
}

// find returns a subscription. It reports one as missing or disabled only after a fresh read, because the cached state may be out of date.
func (b *subscriptionCache) find(ctx context.Context, id holdfast.ID) (sub subscription.Subscription, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := false
	if time.Since(b.read) > cacheMaxAge || b.read.IsZero() {
		if _, err := b.readAllLocked(ctx); err != nil {
			return sub, err
		}
		fresh = true
	}
	for {
		sub, err = readSubscription(b.all[id.String()])
		if err == nil && sub.Disabled == "" || fresh {
			return sub, err
		}
		if _, err := b.readAllLocked(ctx); err != nil {
			return sub, err
		}
		fresh = true
	}
}

func readSubscription(r store.Record) (sub subscription.Subscription, err error) {
	if r.Version == 0 {
		return sub, holdfast.ErrNotFound
	}
	if err := json.Unmarshal(r.Body, &sub); err != nil {
		return sub, fmt.Errorf("the record of subscription %s cannot be decoded: %w", r.Name, err)
	}
	return sub, nil
}

// disable disables a subscription with a reason. It writes one event, however many deliveries call it. On a version conflict it re-reads the record and tries
// again, up to 20 times.
func (b *subscriptionCache) disable(ctx context.Context, id holdfast.ID, why string) error {
	for tries := 0; ; tries++ {
		if _, err := b.readAll(ctx); err != nil {
			return err
		}
		b.mu.Lock()
		r := b.all[id.String()]
		b.mu.Unlock()
		sub, err := readSubscription(r)
		if errors.Is(err, holdfast.ErrNotFound) || err == nil && sub.Disabled != "" {
			return nil
		}
		if err != nil {
			return err
		}
		sub.Disabled = clip(failure.Scrub(why), 1000)
		if r.Body, err = json.Marshal(sub); err != nil {
			return err
		}
		err = b.store.Apply(ctx, store.Change{
			Records: []store.Record{r},
			Events:  []store.Event{{Subject: subscription.Owner(id), Name: "disabled", Actor: actor, Reason: sub.Disabled}},
		})
		if !errors.Is(err, holdfast.ErrConflict) || tries >= 20 {
			return err
		}
	}
}
