package engine

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A book is what this process holds: every lease from its claim until its settlement is answered. Nothing else in the
// engine remembers a lease, so what is in the book is exactly what must be renewed.
type book struct {
	changed chan struct{} // nudged when the last handler returned

	mu       sync.Mutex
	slots    int
	held     map[*attempt]struct{}
	batches  map[holdfast.ID]*batch
	queue    []*attempt    // held ahead, in the order of the claim; some may have been withdrawn since
	ahead    int           // how many of the queue still wait
	working  int           // slots taken
	ended    int           // outcomes known and not yet written
	returned int           // handlers that returned since the last claim,
	spent    time.Duration // and what they took together
	spell    time.Duration // what a handler takes, on the average of late; 0: not known
	answer   time.Duration // what a claim takes, likewise
	strays   int           // handlers that ignored the end of their context and have not returned yet
	hungry   bool          // the last claim stopped for want of room, not of jobs
	low      int           // there is room again when so few are held ahead
	closed   bool          // nothing starts any more
}

// A batch is what one claim brought. Its leases are renewed together.
type batch struct {
	id      holdfast.ID
	held    int       // leases not settled yet
	trusted time.Time // until then nobody else can have reclaimed it
}

func newBook(slots int) *book {
	return &book{
		changed: make(chan struct{}, 1), slots: slots,
		held: make(map[*attempt]struct{}), batches: make(map[holdfast.ID]*batch),
	}
}

// enter writes new leases into the book. Caller holds the lock.
func (b *book) enter(attempts []*attempt, trusted time.Time) {
	for _, a := range attempts {
		of := b.batches[a.lease.Batch]
		if of == nil {
			of = &batch{id: a.lease.Batch, trusted: trusted}
			b.batches[of.id] = of
		}
		of.held++
		a.batch = of
		b.held[a] = struct{}{}
	}
}

// admit takes claimed leases in and answers which of them to start now, or, when the book is closed, which to hand back.
func (b *book) admit(attempts []*attempt, trusted time.Time) (start, release []*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(attempts, trusted)
	if b.closed {
		b.conclude(attempts)
		return nil, attempts
	}
	free := 0
	if b.ahead == 0 {
		free = min(max(0, b.slots-b.working), len(attempts))
	}
	for _, a := range attempts[:free] {
		a.phase = working
	}
	b.working += free
	b.queue = append(b.queue, attempts[free:]...)
	b.ahead += len(attempts) - free
	return attempts[:free], nil
}

// admitEnded takes in leases whose outcome is known before anything runs.
func (b *book) admitEnded(attempts []*attempt, trusted time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(attempts, trusted)
	b.conclude(attempts)
}

func (b *book) conclude(attempts []*attempt) {
	for _, a := range attempts {
		a.phase = over
	}
	b.ended += len(attempts)
}

// launch lets a's context be ended by others. One that was told to stop on its way here is stopped at once; false means it
// was even given up, and must not start.
func (b *book) launch(a *attempt, ctx context.Context, cancel context.CancelCauseFunc) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.ctx, a.cancel, a.began = ctx, cancel, time.Now()
	if a.cause != nil {
		cancel(a.cause)
	}
	return a.phase == working
}

// finish ends a's hold on its slot and answers who is next on it. It is false when a was given up before: then the slot
// is somebody else's by now, and what a's handler returned is void.
func (b *book) finish(a *attempt) (next *attempt, hungry, valid bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !a.began.IsZero() {
		b.returned++
		b.spent += time.Since(a.began)
	}
	if a.phase == over {
		b.strays--
		return nil, false, false
	}
	next = b.vacate(a)
	return next, b.hungry && b.ahead <= b.low, true
}

// abandon gives a up while its handler still works, and replaces its slot. It answers why a was to stop, and nil when the
// handler was faster.
func (b *book) abandon(a *attempt) (next *attempt, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.phase != working {
		return nil, nil
	}
	cause = ErrStopping
	if a.ctx != nil && a.ctx.Err() != nil {
		cause = context.Cause(a.ctx)
	}
	b.strays++
	return b.vacate(a), cause
}

func (b *book) vacate(a *attempt) (next *attempt) {
	a.phase = over
	b.ended++
	for next == nil && len(b.queue) > 0 {
		if b.queue[0].phase == waiting {
			next = b.queue[0]
		}
		b.queue[0] = nil
		b.queue = b.queue[1:]
	}
	if next != nil {
		next.phase = working
		b.ahead--
		return next
	}
	b.working--
	if b.working == 0 {
		nudge(b.changed)
	}
	return nil
}

// stop tells a's handler to stop, with the first cause that is given. One that waits is withdrawn: true, and its outcome
// is the caller's to settle.
func (b *book) stop(a *attempt, cause error) (withdrawn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.cause == nil {
		a.cause = cause
	}
	if a.phase == waiting {
		a.phase = over
		b.ahead--
		b.ended++
		return true
	}
	if a.cancel != nil {
		a.cancel(a.cause)
	}
	return false
}

// close lets nothing start any more and answers what was held ahead, for the caller to hand back.
func (b *book) close() (release []*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, a := range b.queue {
		if a.phase == waiting {
			release = append(release, a)
		}
	}
	b.conclude(release)
	b.queue, b.ahead = nil, 0
	return release
}

// settled strikes out leases whose settlement was answered, and reports whether claiming waits for room.
func (b *book) settled(outcomes []*outcome) (hungry bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range outcomes {
		a := outcomes[i].attempt
		delete(b.held, a)
		b.ended--
		if a.batch.held--; a.batch.held == 0 {
			delete(b.batches, a.batch.id)
		}
	}
	return b.hungry
}

// busy reports how many slots are taken and how many leases are held in all.
func (b *book) busy() (slots, leases int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.working, len(b.held)
}

// nudge leaves a sign for whoever listens; one sign is as good as many.
func nudge(sign chan struct{}) {
	select {
	case sign <- struct{}{}:
	default:
	}
}
