package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// namespaceBucket is the namespace of the records with the buckets of targets.
const namespaceBucket = "mailbox"

// A bucket is a token bucket that limits the deliveries to one target. At is a time of the store's clock.
type bucket struct {
	Level float64   `json:"level"`
	At    time.Time `json:"at"`
}

// take takes one token, if there is one by now.
func (b bucket) take(burst int, every time.Duration, now time.Time) (bucket, bool) {
	if passed := now.Sub(b.At); passed > 0 && every > 0 {
		b.Level += float64(passed) / float64(every)
		b.At = now
	}
	b.Level = min(b.Level, float64(burst))
	if b.Level < 1 {
		return b, false
	}
	b.Level--
	return b, true
}

// combine makes one delivery of all events that a subscription has not been sent, if its target may get one now. Otherwise nothing is read, and the events
// wait. The bucket of the target is written in the same transaction as the cursor, so that subscriptions and processes that share a target cannot take the
// same token twice: the later one gets a version conflict.
func (t *relayRound) combine(ctx context.Context, s *subscriptionRun) error {
	record, open, err := t.bucketRecord(ctx, s)
	if err != nil || !open {
		return err
	}
	var first []store.Event
	all := 0
	for range maxCombinedPages {
		page, err := t.read(ctx, s)
		if err != nil {
			return err
		}
		matched := s.matching(page)
		all += len(matched)
		first = append(first, matched[:min(len(matched), max(1, s.traits.Together)-len(first))]...)
		s.sub.Cursor = page.Next
		if page.Next >= page.Head {
			break
		}
	}
	if all == 0 {
		return t.saveIfNeeded(ctx, s)
	}
	first = first[:s.fitting(first)]
	s.appendDelivery(first, all-len(first))
	s.change.Records = append(s.change.Records, record)
	if err := t.save(ctx, s); err != nil {
		return err
	}
	record.Version++
	t.buckets[record.Name] = record
	return nil
}

// bucketRecord returns the record of a target's bucket as it is after one more delivery, and whether one is allowed now.
func (t *relayRound) bucketRecord(ctx context.Context, s *subscriptionRun) (store.Record, bool, error) {
	if t.buckets == nil {
		records, err := t.store.Records(ctx, namespaceBucket)
		if err != nil {
			return store.Record{}, false, err
		}
		t.buckets = make(map[string]store.Record, len(records))
		for _, r := range records {
			t.buckets[r.Name] = r
		}
	}
	sum := sha256.Sum256([]byte(s.sub.Sink + "\n" + s.sub.Target))
	name := hex.EncodeToString(sum[:16])
	r, known := t.buckets[name]
	if !known {
		r = store.Record{Namespace: namespaceBucket, Name: name}
	}
	var b bucket
	if json.Unmarshal(r.Body, &b) != nil {
		b = bucket{Level: float64(s.traits.Burst)}
	}
	b, open := b.take(s.traits.Burst, s.traits.Every, s.record.AsOf)
	body, err := json.Marshal(b)
	r.Body = body
	return r, open, err
}
