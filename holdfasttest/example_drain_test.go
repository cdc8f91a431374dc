package holdfasttest_test

import (
	"testing"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/holdfasttest"
)

// README start
func TestAnOrderIsChargedAndShipped(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, jobs *holdfasttest.Store) {
		placeOrder(t, jobs, 7)
		bank := &flakyBank{failures: 2}
		stories := holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
			engine.Handle(e, Charging{Bank: bank, Jobs: jobs}.Charge)
			engine.Handle(e, Ship)
		})
		stories.RequireComplete(t)
		if bank.calls != 3 {
			t.Errorf("the bank was called %d times, want 3", bank.calls)
		}
	})
}

// README end
