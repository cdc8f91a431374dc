package postgres

import "github.com/holdfastdev/holdfast/store/internal/lane"

// A liveCount is the number of jobs of a line that are processing. It is counted from the batches that exist, never from a counter that a crash could
// leave wrong.
type liveCount struct {
	lane    *lane.Lane
	retries bool
	jobs    int
}
