package main

import (
	"fmt"
	"time"
)

// Numbers and times as people read them.

// bulk says a number of bytes. It rounds down: nothing is said to be larger than it is.
func bulk(n int64) string {
	if n < 1<<10 {
		return counted(int(n), "byte", "bytes")
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

// age says how long ago an instant was.
func age(at, now time.Time) string {
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
		return counted(int(past/(24*time.Hour)), "day ago", "days ago")
	}
}

// lasting says how long something is kept.
func lasting(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return counted(int(d/(24*time.Hour)), "day", "days")
	case d >= time.Hour:
		return counted(int(d/time.Hour), "hour", "hours")
	case d >= time.Minute:
		return counted(int(d/time.Minute), "minute", "minutes")
	default:
		return counted(int(d/time.Second), "second", "seconds")
	}
}

// counted says a number of things.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
