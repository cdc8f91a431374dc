package site

import (
	"fmt"
	"strconv"
	"time"
)

// formatAge returns how far an instant is from now, such as "3 min ago" or "in 20 s".
func formatAge(now, at time.Time) string {
	d := now.Sub(at)
	text := ""
	switch a := d.Abs(); {
	case a < 2*time.Second:
		return "now"
	case a < time.Minute:
		text = fmt.Sprintf("%d s", int(a.Seconds()))
	case a < time.Hour:
		text = fmt.Sprintf("%d min", int(a.Minutes()))
	case a < 48*time.Hour:
		text = fmt.Sprintf("%d h", int(a.Hours()))
	default:
		text = fmt.Sprintf("%d days", int(a.Hours()/24))
	}
	if d < 0 {
		return "in " + text
	}
	return text + " ago"
}

func formatBytes(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// formatCount returns a number with spaces between thousands.
func formatCount(n int64) string {
	text := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(text) - 3; i > start; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

func formatSeconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// second is for what happens within a minute, such as retries.
func second(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") }

func day(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.UTC().Format("2006-01-02 15:04")
}
