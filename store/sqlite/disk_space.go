package sqlite

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// enough is how much of its file system a store leaves free unless it is told otherwise: what it has can be worked off with that.
const enough = 64 << 20

// A space is the room that is left beside the file. It is looked at once a second at most.
type space struct {
	dir  string
	min  int64 // below it no new jobs are taken; 0: never mind
	free func(dir string) (bytes int64, known bool)

	mu     sync.Mutex
	looked time.Time
	left   int64
	known  bool
}

func newSpace(cfg Config) *space {
	s := &space{dir: filepath.Dir(cfg.Path), min: cfg.MinFree, free: freeBytes}
	switch {
	case s.min == 0:
		s.min = enough
	case s.min < 0:
		s.min = 0
	}
	return s
}

// check refuses new jobs while the file system is nearly full, so that there is room to work off those that are there. Where nobody
// knows how much is left, nothing is refused.
func (s *space) check() error {
	if s.min == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looked.IsZero() || time.Since(s.looked) >= time.Second {
		s.left, s.known = s.free(s.dir)
		s.looked = time.Now()
	}
	if !s.known || s.left >= s.min {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: fmt.Sprintf(
		"the disk has only %d MiB left, and new jobs are taken only while there are %d: free space or lower min_free", s.left>>20, s.min>>20)}
}
