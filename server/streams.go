package server

import (
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/internal/limit"
)

// A streamClass says what a long request is for, and so how many of them there may be.
type streamClass int

const (
	listening streamClass = iota // for events or changes: at most half of all
	bringing                     // jobs, in bulk: with those that listen at most three quarters
	waiting                      // for work: workers that wait for jobs always have the last quarter
)

// streamOf is the class of a long route.
func streamOf(route string) streamClass {
	switch route {
	case api.AwaitWork.Name:
		return waiting
	case api.EnqueueBulk.Name:
		return bringing
	}
	return listening
}

// streams are the long requests under way.
type streams struct {
	mu    sync.Mutex
	of    [3]int         // by class
	whose map[string]int // those that listen, by key or visitor and by address
}

// join takes a long request on. Streams that listen are limited for each caller and for each address too: one of them must not take the places of all others.
func (s *streams) join(most Limits, class streamClass, caller, remote string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.of[listening] + s.of[bringing] + s.of[waiting]
	if all >= most.Streams || class != waiting && s.of[listening]+s.of[bringing] >= max(1, most.Streams*3/4) || class == listening && s.of[listening] >= max(1, most.Streams/2) {
		return nil, busy()
	}
	if class != listening {
		s.of[class]++
		return func() { s.leave(class) }, nil
	}
	from := "address " + limit.Network(remote).String()
	if caller != "" && s.whose[caller] >= max(1, most.InFlight/2) || s.whose[from] >= max(1, most.Streams/4) {
		return nil, &holdfast.Error{Kind: holdfast.ErrThrottled, Message: "too many streams of events are open for this key, visitor or address: close some first", RetryAfter: 5 * time.Second, Cause: errAway}
	}
	if s.whose == nil {
		s.whose = map[string]int{}
	}
	s.of[class]++
	s.whose[caller]++
	s.whose[from]++
	return func() { s.leave(class, caller, from) }, nil
}

// count is how many long requests are under way.
func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[listening] + s.of[bringing] + s.of[waiting]
}

func (s *streams) leave(class streamClass, whose ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[class]--
	for _, name := range whose {
		if s.whose[name]--; s.whose[name] <= 0 {
			delete(s.whose, name)
		}
	}
}
