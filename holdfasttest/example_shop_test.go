package holdfasttest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

// The code under test of the examples: a shop that charges a card and then ships.

// Charge is a job: charge the card of an order.
type Charge struct {
	Order int `json:"order"`
	Cents int `json:"cents"`
}

// Kind names the kind.
func (Charge) Kind() string { return "charge" }

// Shipment is a job: send the goods of an order.
type Shipment struct {
	Order int `json:"order"`
}

// Kind names the kind.
func (Shipment) Kind() string { return "ship" }

// A Receipt is the result of a Charge.
type Receipt struct{ Cents int }

type bank interface{ charge(cents int) error }

// Charging has what the handler of Charge needs.
type Charging struct {
	Bank bank
	Jobs holdfast.Enqueuer // nil: nothing is shipped
}

// Charge is the handler.
func (c Charging) Charge(ctx context.Context, job *engine.Job[Charge]) error {
	if err := c.Bank.charge(job.Args.Cents); err != nil {
		return err
	}
	job.Result(Receipt{Cents: job.Args.Cents})
	if c.Jobs == nil {
		return nil
	}
	_, err := holdfast.Enqueue(ctx, c.Jobs, Shipment{Order: job.Args.Order}, holdfast.UniqueArgs)
	return err
}

// Ship is the handler of Shipment.
func Ship(context.Context, *engine.Job[Shipment]) error { return nil }

type awayBank struct{}

func (awayBank) charge(int) error { return &failure.HTTPError{Status: http.StatusServiceUnavailable} }

type workingBank struct{}

func (workingBank) charge(int) error { return nil }

type flakyBank struct{ calls, failures int }

func (b *flakyBank) charge(int) error {
	if b.calls++; b.calls <= b.failures {
		return awayBank{}.charge(0)
	}
	return nil
}

func placeOrder(t *testing.T, jobs holdfast.Enqueuer, number int) {
	t.Helper()
	if _, err := holdfast.Enqueue(t.Context(), jobs, Charge{Order: number, Cents: 1250}); err != nil {
		t.Fatal(err)
	}
}
