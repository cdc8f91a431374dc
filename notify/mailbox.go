package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
)

// roomMailbox is the room of the records with the buckets of targets.
const roomMailbox = "mailbox"

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

// gather makes one delivery of all events that a subscription has not been sent, if its target may get one now. Otherwise nothing is read, and the events
// wait.
func (t *turn) gather(ctx context.Context, s *stretch) error {
	mailbox, open, err := t.mailbox(ctx, s)
	if err != nil || !open {
		return err
	}
	var first []holdfast.Event
	all := 0
	for range maxGather {
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
		return t.keepIfWorth(ctx, s)
	}
	first = first[:s.fit(first)]
	s.post(first, all-len(first))
	s.change.Records = append(s.change.Records, mailbox)
	if err := t.keep(ctx, s); err != nil {
		return err
	}
	mailbox.Version++
	t.mailboxes[mailbox.Name] = mailbox
	return nil
}

// mailbox returns the record of a target's bucket as it is after one more delivery, and whether one is allowed now.
func (t *turn) mailbox(ctx context.Context, s *stretch) (holdfast.Record, bool, error) {
	if t.mailboxes == nil {
		records, err := t.store.Records(ctx, roomMailbox)
		if err != nil {
			return holdfast.Record{}, false, err
		}
		t.mailboxes = make(map[string]holdfast.Record, len(records))
		for _, r := range records {
			t.mailboxes[r.Name] = r
		}
	}
	sum := sha256.Sum256([]byte(s.sub.Sink + "\n" + s.sub.Target))
	name := hex.EncodeToString(sum[:16])
	r, known := t.mailboxes[name]
	if !known {
		r = holdfast.Record{Room: roomMailbox, Name: name}
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
