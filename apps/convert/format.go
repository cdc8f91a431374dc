package main

import (
	"fmt"
	"time"
)

// Numbers and times for people. page/format.js formats the same way; a test compares the two.

// formatBytes formats a number of bytes. It rounds down.
func formatBytes(n int64) string {
	if n < 1<<10 {
		return plural(int(n), "byte", "bytes")
	}
	unit := int64(1 << 10)
	names := []string{"KB", "MB", "GB"}
	for n >= unit<<10 && len(names) > 1 {
		unit, names = unit<<10, names[1:]
	}
	if tenths := n * 10 / unit; tenths < 100 && tenths%10 != 0 {
		return fmt.Sprintf("%d.%d %s", tenths/10, tenths%10, names[0])
	}
	return fmt.Sprintf("%d %s", n/unit, names[0])
}

// formatAge formats how long ago a time was.
func formatAge(at, now time.Time) string {
	switch past := now.Sub(at); {
	case past < 10*time.Second:
		return "just now"
	case past < time.Minute:
		return fmt.Sprintf("%d s ago", past/(10*time.Second)*10)
	case past < time.Hour:
		return fmt.Sprintf("%d min ago", past/time.Minute)
	case past < 24*time.Hour:
		return fmt.Sprintf("%d h ago", past/time.Hour)
	default:
		return plural(int(past/(24*time.Hour)), "day ago", "days ago")
	}
}

// formatPeriod formats a retention period.
func formatPeriod(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return plural(int(d/(24*time.Hour)), "day", "days")
	case d >= time.Hour:
		return plural(int(d/time.Hour), "hour", "hours")
	case d >= time.Minute:
		return plural(int(d/time.Minute), "minute", "minutes")
	default:
		return plural(int(d/time.Second), "second", "seconds")
	}
}

// plural formats a number of things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
