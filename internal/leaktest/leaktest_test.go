package leaktest

import (
	"strings"
	"testing"
	"time"
)

func TestAGoroutineThatIsLeftIsFound(t *testing.T) {
	before := len(running())
	stop := make(chan struct{})
	go func() { <-stop }()
	left := await(50 * time.Millisecond)
	if len(left) != before+1 || !strings.Contains(strings.Join(left, "\n"), "TestAGoroutineThatIsLeftIsFound") {
		t.Errorf("%d goroutines are left, want %d:\n%s", len(left), before+1, strings.Join(left, "\n\n"))
	}
	close(stop)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); len(running()) > before; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("a goroutine that has ended is still found")
		}
	}
}
