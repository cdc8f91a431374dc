package holdfasttest_test

import (
	"testing"

	"github.com/holdfastdev/holdfast/holdfasttest"
)

// README start
func TestChargeIsRetriedWhileTheBankIsAway(t *testing.T) {
	charge := Charging{Bank: awayBank{}}.Charge
	attempt := holdfasttest.Work(t, charge, Charge{Order: 7, Cents: 1250})
	attempt.RequireRetry(t, "DEPENDENCY_DOWN")
}

func TestChargeStoresTheReceipt(t *testing.T) {
	charge := Charging{Bank: workingBank{}}.Charge
	attempt := holdfasttest.Work(t, charge, Charge{Order: 7, Cents: 1250})
	attempt.RequireComplete(t)
	var receipt Receipt
	attempt.RequireResult(t, &receipt)
	if receipt.Cents != 1250 {
		t.Errorf("charged %d cents, want 1250", receipt.Cents)
	}
}

// README end
