package web

import (
	"fmt"
	"strconv"
	"time"
)

// FormatBytes formats a size for people.
func FormatBytes[N int | int64](n N) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1 << 40, "TB"}, {1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}} {
		if float64(n) >= unit.size {
			return strconv.FormatFloat(float64(n)/unit.size, 'f', 1, 64) + " " + unit.name
		}
	}
	return strconv.FormatInt(int64(n), 10) + " bytes"
}

// FormatAge formats how long ago an instant is, or how far ahead.
func FormatAge(now, at time.Time) string {
	d := now.Sub(at)
	switch {
	case d.Abs() < 2*time.Second:
		return "now"
	case d < 0:
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

// FormatCount formats a number with spaces between thousands.
func FormatCount[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(text) - 3; i > first; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// FormatMinute formats an instant to the minute, in UTC. A zero time gives an empty text.
func FormatMinute(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04")
}
