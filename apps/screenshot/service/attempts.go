package service

import (
	"sync"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
)

// maxAttempt is the last attempt that is counted by its number. Later ones are counted with it.
const maxAttempt = 10

// An AttemptCount is how many attempts with a number ended, and how.
type AttemptCount struct {
	Attempt  int   `json:"attempt"`
	Complete int64 `json:"complete"`
	Failed   int64 `json:"failed"`
}

// attempts counts attempts of shots by their number, in this process.
type attempts struct {
	mu    sync.Mutex
	count [maxAttempt + 1]AttemptCount
}

func (a *attempts) observe(end engine.AttemptEnd) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.count[min(max(end.Attempt, 1), maxAttempt)]
	switch {
	case end.To == holdfast.Complete:
		c.Complete++
	case end.Failure != nil:
		c.Failed++
	}
}

// Attempts returns how attempts ended in this process, by their number in the generation.
func (s *Service) Attempts() (list []AttemptCount) {
	s.attempts.mu.Lock()
	defer s.attempts.mu.Unlock()
	for n := 1; n <= maxAttempt; n++ {
		if c := s.attempts.count[n]; c.Complete+c.Failed > 0 {
			c.Attempt = n
			list = append(list, c)
		}
	}
	return list
}
