package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// halt is how a stop is requested and how far it is.
type halt struct {
	request, hurry func()          // request a graceful stop; end its grace period
	requested      context.Context // ends when request is called
	hurried        context.Context // ends when hurry is called
	done           chan struct{}   // closed when Run has returned
}

func newHalt() *halt {
	h := &halt{done: make(chan struct{})}
	h.requested, h.request = context.WithCancel(context.Background())
	h.hurried, h.hurry = context.WithCancel(context.Background())
	return h
}

// drain ends the work of a stopping engine, in this order:
//
//  1. Jobs that wait for a slot are released. Chunks that wait for more jobs are handed over.
//  2. Running handlers have Grace to return. Then their contexts end, and they have AbandonAfter to return. Then they are abandoned.
//  3. The intake duties end. A claim in progress is not cut short; the jobs it returns are released.
//  4. The last outcomes are settled.
//
// Leases are renewed all the while, so a drain may last longer than a lease. If the last settlements cannot be written within a lease, the error says how
// many jobs are left to be reclaimed.
func (e *Engine) drain(intake, settler *sync.WaitGroup) error {
	e.keeper.releaseWaiting()
	e.registry.handOverChunks()
	grace, cancel := context.WithTimeout(e.halt.hurried, e.cfg.Grace)
	defer cancel()
	e.keeper.waitIdle(grace)
	e.keeper.stopRunning()
	patience, cancelPatience := context.WithTimeout(e.storeCtx, e.cfg.AbandonAfter)
	defer cancelPatience()
	e.keeper.waitIdle(patience)
	e.keeper.abandonAll()

	intake.Wait()
	e.settler.close()
	if waitFor(settler, e.lastSettleTimeout()) {
		return nil
	}
	e.cancelStore()
	settler.Wait()
	_, left := e.leases.busy()
	if left == 0 {
		return nil
	}
	return &holdfast.Error{
		Err:     holdfast.ErrUnavailable,
		Message: fmt.Sprintf("the store was unavailable at the end of the stop: the outcomes of %d jobs were not written; these jobs will be reclaimed when their leases expire", left),
	}
}

// lastSettleTimeout is how long a stopping engine tries to write the last settlements. After a lease other workers may have reclaimed the jobs.
func (e *Engine) lastSettleTimeout() time.Duration {
	if e.halt.hurried.Err() != nil {
		return min(e.cfg.AbandonAfter, e.cfg.Lease)
	}
	return e.cfg.Lease
}

// waitFor waits for a group. It returns false if that takes longer than within.
func waitFor(group *sync.WaitGroup, within time.Duration) bool {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// leave removes this worker's presence and report from the store. An error is only logged: both expire without it.
func (e *Engine) leave() error {
	remove := func(context.Context) error {
		return errors.Join(e.duties.reporter.delete(), e.keeper.leave())
	}
	if err := callSafely(e.storeCtx, remove); err != nil {
		e.logIgnored("leave", err)
	}
	return nil
}
