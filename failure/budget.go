package failure

import (
	"errors"
	"fmt"
)

// A Budget limits the retries of a dependency: a share of its first attempts, and a minimum per minute however few there are.
// Retries beyond it wait; none is dropped. So a dependency that fails every call is called only a little more often than one that
// fails none. The zero value is valid.
type Budget struct {
	Ratio float64 // retries for each first attempt; 0.2 when zero
	Floor float64 // retries per minute that are always available; 3 when zero
	Burst float64 // unused retries that can be saved up; 100 when zero
}

const (
	defaultRatio = 0.2
	defaultFloor = 3
	defaultSaved = 100
)

// Check returns an error that names every problem, or nil. The other methods do not need it: they replace an invalid number by
// the default.
func (b Budget) Check() error {
	var problems []error
	refuse := func(field string, n, least, limit float64) {
		if n != 0 && !(n >= least && n <= limit) {
			problems = append(problems, fmt.Errorf("Budget.%s is %v: give %v to %v, or 0 for the default", field, n, least, limit))
		}
	}
	refuse("Ratio", b.Ratio, 0, maxRatio)
	refuse("Floor", b.Floor, 0, maxFloor)
	refuse("Burst", b.Burst, 1, maxSaved)
	return errors.Join(problems...)
}

const (
	maxRatio = 100
	maxFloor = 6e7 // a minute, which is the million a second a hold accepts
	maxSaved = 1e9
)

// Rate returns the budget as a token bucket: tokens per second, capacity, and initial level, which is one minute's worth.
func (b Budget) Rate() (perSecond, burst, level float64) {
	burst = max(within(b.Burst, defaultSaved, maxSaved), 1)
	floor := within(b.Floor, defaultFloor, maxFloor)
	return floor / 60, burst, min(floor, burst)
}

// Deposit returns the tokens that ended attempts add to the bucket: Ratio for each first attempt. A retry that succeeded
// returns the token it took and adds Ratio.
func (b Budget) Deposit(firsts, retriesGood int) float64 {
	ratio := within(b.Ratio, defaultRatio, maxRatio)
	return min(ratio*float64(max(firsts, 0))+(1+ratio)*float64(max(retriesGood, 0)), maxSaved)
}

// within returns n limited to limit, or the default if n is not positive.
func within(n, otherwise, limit float64) float64 {
	if !(n > 0) { // also when it is not a number
		return otherwise
	}
	return min(n, limit)
}
