package main

import "testing"

func TestOnlyACrashOfTheDetectorIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name, out string
		want      bool
	}{
		{"the detector's own check", "ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 (tid=7075)", true},
		{"the detector's own fault", "ThreadSanitizer:DEADLYSIGNAL\n", true},
		{"its fault on a system stack", "SIGSEGV: segmentation violation\ngoroutine 0 gp=0xc000009860 m=4 [idle, synctest bubble 1]:", true},
		{"a data race", "WARNING: DATA RACE\nThreadSanitizer: CHECK failed: tsan_rtl.cpp:346", false},
		{"a failed test", "--- FAIL: TestX\nThreadSanitizer: CHECK failed", false},
		{"a panic of ours", "panic: assignment to entry in nil map\nSIGSEGV", false},
		{"a nil pointer of ours", "SIGSEGV: segmentation violation", false},
	} {
		if got := detectorDied([]byte(c.out)); got != c.want {
			t.Errorf("%s: tried again %v, want %v", c.name, got, c.want)
		}
	}
}
