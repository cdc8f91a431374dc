package server

import (
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/internal/limit"
)

// A streamClass is the purpose of a long request. It decides how many there may be.
type streamClass int

const (
	eventStream streamClass = iota // events or changes: at most half of all
	bulkStream                     // jobs in bulk, or a wait for the end of a job: together with eventStream at most three quarters
	waitStream                     // for work: the last quarter is reserved for workers that wait for jobs
)

// streamOf is the class of a long route.
func streamOf(route string) streamClass {
	switch route {
	case api.AwaitWork.Name:
		return waitStream
	case api.EnqueueBulk.Name, api.GetJob.Name, api.StoreJob.Name:
		return bulkStream
	}
	return eventStream
}

// streams counts the long requests in progress. It is safe for concurrent use.
type streams struct {
	mu        sync.Mutex
	of        [3]int         // number by class
	listeners map[string]int // number of event streams by key or visitor, and by address
}

// join admits a long request. Event streams are also limited for each caller and for each address, so that one of them cannot take the places of all others.
// On nil the caller must call leave exactly once.
func (s *streams) join(most Limits, class streamClass, caller, remote string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.of[eventStream] + s.of[bulkStream] + s.of[waitStream]
	if all >= most.Streams || class != waitStream && s.of[eventStream]+s.of[bulkStream] >= max(1, most.Streams*3/4) || class == eventStream && s.of[eventStream] >= max(1, most.Streams/2) {
		return nil, busy()
	}
	if class != eventStream {
		s.of[class]++
		return func() { s.leave(class) }, nil
	}
	from := "address " + limit.Network(remote).String()
	if caller != "" && s.listeners[caller] >= max(1, most.InFlight/2) || s.listeners[from] >= max(1, most.Streams/4) {
		return nil, &holdfast.Error{Err: holdfast.ErrThrottled, Message: "too many event streams are open for this key, visitor or address: close some first", RetryAfter: 5 * time.Second, Cause: errRejected}
	}
	if s.listeners == nil {
		s.listeners = map[string]int{}
	}
	s.of[class]++
	s.listeners[caller]++
	s.listeners[from]++
	return func() { s.leave(class, caller, from) }, nil
}

// count is the number of long requests in progress.
func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[eventStream] + s.of[bulkStream] + s.of[waitStream]
}

func (s *streams) leave(class streamClass, listeners ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[class]--
	for _, name := range listeners {
		if s.listeners[name]--; s.listeners[name] <= 0 {
			delete(s.listeners, name)
		}
	}
}
