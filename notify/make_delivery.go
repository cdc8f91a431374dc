package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// maxDeliveryBytes is the maximum size of the events in one delivery. It is well below the maximum of a job's arguments, and well above one event.
const maxDeliveryBytes = check.MaxArgs / 2

// addDelivery makes a delivery of the first events, as many as fit together, and returns how many.
func (s *subscriptionRun) addDelivery(events []store.Event) int {
	if len(events) == 0 {
		return 0
	}
	sent := s.fitting(events)
	s.appendDelivery(events[:sent], 0)
	return sent
}

// fitting is how many of the events go into one delivery: at least one.
func (s *subscriptionRun) fitting(events []store.Event) int {
	left, n := maxDeliveryBytes, 0
	for n < len(events) && n < max(1, s.traits.Together) {
		body, err := json.Marshal(events[n])
		if left -= len(body); err != nil || left < 0 && n > 0 {
			break
		}
		n++
	}
	return max(n, 1)
}

// appendDelivery adds a delivery to the change. The same events get the same delivery id, whenever they are delivered.
func (s *subscriptionRun) appendDelivery(events []store.Event, more int) {
	id := fmt.Sprintf("%s_%d", s.sub.ID, events[0].Seq)
	if last := events[len(events)-1].Seq; last != events[0].Seq || more > 0 {
		id = fmt.Sprintf("%s_%d_%d", s.sub.ID, events[0].Seq, last)
	}
	body, err := json.Marshal(deliveryArgs{Subscription: s.sub.ID, ID: id, Events: events, More: more})
	if err != nil {
		panic(err) // an event has only strings and numbers, which always encode
	}
	draft := holdfast.Draft{
		ID: holdfast.NewID(), Kind: kindPrefix + s.sub.Sink, Queue: subscription.Queue, Owner: subscription.Owner(s.sub.ID),
		Dependency: dependency(s.sink.Host(s.sub), s.sub), Args: body,
	}
	s.change.Deliver = append(s.change.Deliver, draft)
	if s.traits.Ordered {
		s.sub.Sending = draft.ID
	}
}

// dependency is the dependency name of a receiver's host. A receiver without a host has a dependency of its own.
func dependency(host string, sub subscription.Subscription) string {
	if host == "" {
		host = subscription.Owner(sub.ID)
	}
	name := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.', c == ':', c == '/':
			return c
		}
		return '_'
	}, host)
	if len(name) > check.MaxName {
		sum := sha256.Sum256([]byte(host))
		name = name[:check.MaxName-17] + ":" + hex.EncodeToString(sum[:8])
	}
	return name
}
