package failure

import (
	"errors"
	"fmt"
)

// A Budget says how many retries a dependency can be given: a share of its first attempts, and a few a minute however quiet it
// is. What exceeds it waits; nothing is dropped. So a dependency that fails every call is called little more often than one
// that fails none.
type Budget struct {
	Ratio float64 // retries for each first attempt; 0.2 when zero
	Floor float64 // retries a minute that are always there; 3 when zero
	Burst float64 // retries that can be saved up; 100 when zero
}

const (
	defaultRatio = 0.2
	defaultFloor = 3
	defaultSaved = 100
)

// Check refuses a budget that makes no sense, naming every problem at once. The rest of it does not need that: it takes a
// number that makes no sense for the default.
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

// Rate is the budget as a bucket: what flows into it by itself, what it holds, and what is in it at first, which is a minute's
// worth of that.
func (b Budget) Rate() (perSecond, burst, level float64) {
	burst = max(within(b.Burst, defaultSaved, maxSaved), 1)
	floor := within(b.Floor, defaultFloor, maxFloor)
	return floor / 60, burst, min(floor, burst)
}

// Deposit is what attempts put into the bucket: a share for each first one. A retry that did its work gets back the token it
// took, and its share on top.
func (b Budget) Deposit(firsts, retriesGood int) float64 {
	ratio := within(b.Ratio, defaultRatio, maxRatio)
	return min(ratio*float64(max(firsts, 0))+(1+ratio)*float64(max(retriesGood, 0)), maxSaved)
}

// within is n, or the default when n says nothing.
func within(n, otherwise, limit float64) float64 {
	if !(n > 0) { // also when it is not a number
		return otherwise
	}
	return min(n, limit)
}
