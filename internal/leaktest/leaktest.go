// Package leaktest checks that no goroutine is left after the tests of a package.
package leaktest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines have to end after the last test.
const patience = 10 * time.Second

// Main runs the tests, checks for goroutines that are left if they passed, and exits. A package calls it in its TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if left := await(patience); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "%d goroutines are left after the tests:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
			code = 1
		}
	}
	os.Exit(code)
}

// await returns the goroutines that are still left after a time, or none as soon as there is none.
func await(patience time.Duration) (left []string) {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if left = running(); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// running returns the stacks of all goroutines but this one and those of the runtime's signal handling.
func running() (stacks []string) {
	buffer := make([]byte, 1<<20)
	for n := runtime.Stack(buffer, true); ; n = runtime.Stack(buffer, true) {
		if n < len(buffer) {
			buffer = buffer[:n]
			break
		}
		buffer = make([]byte, 2*len(buffer))
	}
	for _, stack := range strings.Split(string(buffer), "\n\n")[1:] { // the first one is this goroutine
		if !strings.Contains(stack, "os/signal.signal_recv") && !strings.Contains(stack, "os/signal.loop") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
