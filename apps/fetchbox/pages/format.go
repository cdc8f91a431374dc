package pages

import (
	"fmt"
	"strconv"
	"time"
)

// formatBytes formats a size for people.
func formatBytes(n int64) string {
	for _, unit := range []struct {
		n    int64
		name string
	}{{1 << 40, "TB"}, {1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}} {
		if n >= unit.n {
			return strconv.FormatFloat(float64(n)/float64(unit.n), 'f', 1, 64) + " " + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// formatAge formats how long ago an instant is, or how far ahead.
func formatAge(now, at time.Time) string {
	d := now.Sub(at)
	if d < 0 {
		return "in " + formatSpan(-d)
	}
	return formatSpan(d) + " ago"
}

func formatSpan(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// formatCount formats a number with spaces between thousands.
func formatCount(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// percentOf returns n of total in whole percent; 100 only if nothing is missing.
func percentOf(n, total int) int {
	if total <= 0 {
		return 0
	}
	return n * 100 / total
}
