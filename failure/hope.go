package failure

import (
	"fmt"
	"math"
)

// A Hope is what experience says about trying again after a failure: so often it was tried, and so often it helped.
type Hope struct {
	Tried     int
	Succeeded int
}

const (
	defaultHopeless = 0.02
	enoughTries     = 50
	promising       = 0.5
)

// hope is the experience with retries after the n-th failure, when that was of this code. A retry that failed again, after
// which a later one helped, has helped too, so the later ones' successes are counted in; that may be too kind and is never
// too harsh. It is known only when the policy learns and there is enough of it.
func (r Rules) hope(code string, n int) (h Hope, known bool) {
	if !r.Policy.Learned {
		return h, false
	}
	numbers := r.Hopes[code]
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

// hopeless says why another attempt would be in vain, or nothing.
func (r Rules) hopeless(code string, n int) string {
	h, known := r.hope(code, n)
	limit := r.Policy.Hopeless
	if !(limit > 0 && limit < 1) {
		limit = defaultHopeless
	}
	if _, high := h.bounds(); !known || high >= limit {
		return ""
	}
	return fmt.Sprintf("gave up early: of %d such retries %d helped", h.Tried, h.Succeeded)
}

// promise says that another attempt is likely to help, as the end of a sentence, or nothing.
func (r Rules) promise(code string, n int) string {
	h, known := r.hope(code, n)
	if low, _ := h.bounds(); !known || low < promising {
		return ""
	}
	return fmt.Sprintf("; of %d such retries %d helped", h.Tried, h.Succeeded)
}

// bounds are between what shares the true share of successes lies, with a confidence of 95 % (the Wilson score interval).
func (h Hope) bounds() (low, high float64) {
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
