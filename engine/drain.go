package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// drain ends the work in order: nothing more comes in, what waits is handed back, what works is given Grace, then told to
// stop and given Patience, then given up; and the last settlement is written. Leases are renewed all the while.
func (e *Engine) drain(front, station *sync.WaitGroup) error {
	e.handBack(e.book.close())
	grace, enough := context.WithTimeout(e.hurrying, e.cfg.Grace)
	defer enough()
	e.untilIdle(grace)
	for _, a := range e.book.stragglers() {
		e.book.stop(a, ErrStopping)
	}
	patience, enough := context.WithTimeout(e.keeping, e.cfg.Patience)
	defer enough()
	e.untilIdle(patience)
	e.giveUpAll()

	front.Wait() // a claim under way is let finish: what it brings is handed back
	e.outbox.close()
	if e.await(station, e.lastWait()) {
		return nil
	}
	e.letGo()
	station.Wait()
	_, left := e.book.busy()
	if left == 0 {
		return nil
	}
	return &holdfast.Error{
		Kind:    holdfast.ErrUnavailable,
		Message: fmt.Sprintf("the store could not be reached at the end: what became of %d jobs was not written; they will be reclaimed when their leases end", left),
	}
}

// lastWait is how long the store is asked to take the last settlements: after a lease they are somebody else's to tell.
func (e *Engine) lastWait() time.Duration {
	if e.hurrying.Err() != nil {
		return min(e.cfg.Patience, e.cfg.Lease)
	}
	return e.cfg.Lease
}

// untilIdle waits until no handler occupies a slot, or until ctx ends.
func (e *Engine) untilIdle(ctx context.Context) {
	for {
		if slots, _ := e.book.busy(); slots == 0 || ctx.Err() != nil {
			return
		}
		select {
		case <-e.book.changed:
		case <-ctx.Done():
		}
	}
}

// giveUpAll gives up whoever still works.
func (e *Engine) giveUpAll() {
	for _, a := range e.book.stragglers() {
		e.giveUp(a)
	}
}

// await waits for a group and is false when it took too long.
func (e *Engine) await(group *sync.WaitGroup, within time.Duration) bool {
	gone := make(chan struct{})
	go func() {
		group.Wait()
		close(gone)
	}()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-gone:
		return true
	case <-timer.C:
		return false
	}
}

// leave takes this worker off the list of those present. That it could not is no failure of the work: it will be believed
// gone by itself.
func (e *Engine) leave() error {
	gone := func(context.Context) error { return errors.Join(e.forgetReport(), e.present(0)) }
	if err := once(e.keeping, gone); err != nil {
		e.complain("leave", err)
	}
	return nil
}

// stragglers are the attempts whose handlers occupy a slot.
func (b *book) stragglers() (all []*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a := range b.held {
		if a.phase == working {
			all = append(all, a)
		}
	}
	return all
}
