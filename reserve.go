package holdfast

import (
	"fmt"
	"github.com/holdfastdev/holdfast/internal/check"
	"strings"
)

// Names that only deliveries of subscriptions may have. A delivery is signed with the secret of its subscription, so a job
// that a caller could give these names would be a forged notification.
const (
	reservedKinds  = "holdfast." // prefix
	reservedQueue  = "holdfast"
	reservedOwners = "subscription/" // prefix
)

// Reserved returns an error that wraps ErrInvalid if the draft uses a name that is reserved for Holdfast: a kind that begins with
// "holdfast.", the queue "holdfast", or an owner that begins with "subscription/", in upper or lower case. Stores check all
// names that callers give. Only Change.Deliver may use reserved names.
func (d *Draft) Reserved() error {
	kind, queue, owner := d.Kind, d.Queue, d.Owner
	var p check.Problems
	if beginsWith(kind, reservedKinds) {
		p.Add("kind %.140q: names that begin with %s are reserved; choose another", kind, reservedKinds)
	}
	if strings.EqualFold(queue, reservedQueue) {
		p.Add("queue %.140q: it is reserved for deliveries of subscriptions; choose another", queue)
	}
	if beginsWith(owner, reservedOwners) {
		p.Add("owner %.60q: names that begin with %s are reserved; choose another", owner, reservedOwners)
	}
	if len(p) == 0 {
		return nil
	}
	return invalid(p[0])
}

func beginsWith(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

// PrepareDelivery is Prepare for a draft of Change.Deliver. The draft must have the reserved names of a delivery.
func (d *Draft) PrepareDelivery() error {
	if !strings.HasPrefix(d.Kind, reservedKinds) || d.Queue != reservedQueue || !strings.HasPrefix(d.Owner, reservedOwners) {
		return &Error{Err: ErrInvalid, Message: fmt.Sprintf("a delivery of kind %.140q in queue %.140q, owner %.60q: its kind begins with %s, its queue is %s, and its owner begins with %s",
			d.Kind, d.Queue, d.Owner, reservedKinds, reservedQueue, reservedOwners)}
	}
	return d.prepare()
}
