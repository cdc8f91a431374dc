package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
)

// settings returns the settings that are set, as text.
func (t *terms) settings() map[string]string {
	given := map[string]string{}
	put := func(is bool, name, value string) {
		if is {
			given[name] = value
		}
	}
	put(t.maxAttempts > 0, "max_attempts", strconv.Itoa(t.maxAttempts))
	put(t.giveUpAfter > 0, "give_up_after", durationText(t.giveUpAfter))
	put(t.backoff != nil, "backoff", backoffText(t.backoff))
	put(t.maxCrashes > 0, "max_crashes", strconv.Itoa(t.maxCrashes))
	put(t.crashBackoff != nil, "crash_backoff", backoffText(t.crashBackoff))
	put(t.retryAfterCap > 0, "retry_after_cap", durationText(t.retryAfterCap))
	put(t.retryWithin > 0, "retry_within", durationText(t.retryWithin))
	put(t.throttle != "", "throttle", string(t.throttle))
	put(t.minSuccessRate > 0, "min_success_rate", percent(t.minSuccessRate))
	for name, flag := range map[string]*bool{"retryable": t.retryable, "learned": t.learned, "throttle_trips_breaker": t.throttleTrips, "group_benign": t.groupBenign} {
		if flag != nil {
			given[name] = strconv.FormatBool(*flag)
		}
	}
	return given
}

// backoffText describes a backoff.
func backoffText(b failure.Backoff) string {
	switch b := b.(type) {
	case failure.Exponential:
		parts := []string{}
		for _, one := range []struct {
			is   bool
			text string
		}{{b.Base > 0, durationText(b.Base)}, {b.Factor > 0, "times " + strconv.Itoa(b.Factor)}, {b.Cap > 0, "up to " + durationText(b.Cap)}, {b.Jitter != failure.Jitter{}, jitterText(b.Jitter)}} {
			if one.is {
				parts = append(parts, one.text)
			}
		}
		return "exponential: " + strings.Join(parts, ", ")
	case failure.Fixed:
		return "fixed: " + durationText(time.Duration(b))
	case failure.Table:
		words := make([]string, len(b))
		for i, d := range b {
			words[i] = durationText(d)
		}
		return "table: " + strings.Join(words, ", ")
	case failure.Spread:
		return backoffText(b.Of) + ", " + jitterText(b.Jitter)
	}
	return fmt.Sprintf("of the application (%T)", b)
}

func jitterText(j failure.Jitter) string {
	switch {
	case j.Full:
		return "full jitter"
	case j.Plus > 0:
		return "plus up to " + durationText(j.Plus)
	}
	return fmt.Sprintf("jitter %d%%", j.Percent)
}

// durationText formats a duration without units that are zero: 1h, 1m30s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) + "%" }

func numberText(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }
