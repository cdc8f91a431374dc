package holdfast

import (
	"fmt"
	"strings"
)

// Names that deliveries of subscriptions have, and no other job. A delivery is signed with the secret of its subscription: a job that a caller could pass
// off as one would be a forged notification.
const (
	reservedKinds  = "holdfast."
	reservedQueue  = "holdfast"
	reservedOwners = "subscription/"
)

// Reserved refuses a draft of which a name is Holdfast's own: kinds that begin with "holdfast.", the queue "holdfast" and owners that begin
// with "subscription/", in whatever case. Stores ask it about everything that callers name; only what Change.Deliver brings has these names.
func (d *Draft) Reserved() error {
	kind, queue, owner := d.Kind, d.Queue, d.Owner
	var p problems
	if beginsWith(kind, reservedKinds) {
		p.add("kind %.140q: names that begin with %s are Holdfast's own; choose another", kind, reservedKinds)
	}
	if strings.EqualFold(queue, reservedQueue) {
		p.add("queue %.140q: it is Holdfast's own, for deliveries of subscriptions; choose another", queue)
	}
	if beginsWith(owner, reservedOwners) {
		p.add("owner %.60q: names that begin with %s are Holdfast's own; choose another", owner, reservedOwners)
	}
	if len(p) == 0 {
		return nil
	}
	return p[0]
}

func beginsWith(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

// PrepareDelivery is Prepare for a draft of Change.Deliver: it must have the names of a delivery.
func (d *Draft) PrepareDelivery() error {
	if !strings.HasPrefix(d.Kind, reservedKinds) || d.Queue != reservedQueue || !strings.HasPrefix(d.Owner, reservedOwners) {
		return &Error{Kind: ErrInvalid, Message: fmt.Sprintf("a delivery of kind %.140q in queue %.140q, owner %.60q: its kind begins with %s, its queue is %s, and its owner begins with %s",
			d.Kind, d.Queue, d.Owner, reservedKinds, reservedQueue, reservedOwners)}
	}
	return d.prepare()
}
