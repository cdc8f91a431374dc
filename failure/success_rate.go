package failure

import (
	"fmt"
	"math"
)

// A SuccessRate is how often a retry after such a failure was made, and how often it succeeded.
type SuccessRate struct {
	Tried     int
	Succeeded int
}

const (
	defaultMinSuccessRate = 0.02
	enoughTries           = 50
	promising             = 0.5
)

// hope returns the experience with retries after the n-th failure with this code. The successes of later retries are
// included, because a retry that failed still led to them; this may overestimate the chance of success and never
// underestimates it. known is false unless the policy is Learned and there are at least enoughTries.
func (r Rules) hope(code string, n int) (h SuccessRate, known bool) {
	if !r.Policy.Learned {
		return h, false
	}
	numbers := r.SuccessRates[code]
	h.Tried = numbers[n].Tried
	if h.Tried < enoughTries {
		return h, false
	}
	for number, later := range numbers {
		if number >= n {
			h.Succeeded += min(max(later.Succeeded, 0), h.Tried) // no sum of these overflows
		}
	}
	h.Succeeded = min(h.Succeeded, h.Tried)
	return h, true
}

// earlyStop says why a retry is not worth making; empty: it is, or that is not known.
func (r Rules) earlyStop(code string, n int) string {
	h, known := r.hope(code, n)
	limit := r.Policy.MinSuccessRate
	if !(limit > 0 && limit < 1) {
		limit = defaultMinSuccessRate
	}
	if _, high := h.bounds(); !known || high >= limit {
		return ""
	}
	return fmt.Sprintf("gave up early: only %d of %d such retries succeeded", h.Succeeded, h.Tried)
}

// successNote says that a retry is likely to succeed, as the end of a sentence; empty: it is not, or that is not known.
func (r Rules) successNote(code string, n int) string {
	h, known := r.hope(code, n)
	if low, _ := h.bounds(); !known || low < promising {
		return ""
	}
	return fmt.Sprintf("; %d of %d such retries succeeded", h.Succeeded, h.Tried)
}

// bounds returns the 95 % confidence interval of the true share of successes (Wilson score interval).
func (h SuccessRate) bounds() (low, high float64) {
	if h.Tried <= 0 {
		return 0, 1
	}
	const z = 1.959964
	n := float64(h.Tried)
	p := float64(min(max(h.Succeeded, 0), h.Tried)) / n
	middle := p + z*z/(2*n)
	around := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return (middle - around) / (1 + z*z/n), (middle + around) / (1 + z*z/n)
}
