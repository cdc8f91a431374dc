package sqlite

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// defaultMinFree is how many bytes of its file system a store leaves free by default: enough to run the jobs that it
// has.
const defaultMinFree = 64 << 20

// A diskSpace watches how much space is left on the file system of the store. It asks the system at most once a second.
type diskSpace struct {
	dir  string
	min  int64 // below it new jobs are refused; 0: never
	free func(dir string) (bytes int64, known bool)

	mu        sync.Mutex
	checkedAt time.Time
	left      int64
	known     bool
}

func newDiskSpace(cfg Config) *diskSpace {
	s := &diskSpace{dir: filepath.Dir(cfg.Path), min: cfg.MinFree, free: freeBytes}
	switch {
	case s.min == 0:
		s.min = defaultMinFree
	case s.min < 0:
		s.min = 0
	}
	return s
}

// check refuses new jobs while the file system is nearly full, so that the jobs that are stored can still run. Where
// the free space is not known, nothing is refused.
func (s *diskSpace) check() error {
	if s.min == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checkedAt.IsZero() || time.Since(s.checkedAt) >= time.Second {
		s.left, s.known = s.free(s.dir)
		s.checkedAt = time.Now()
	}
	if !s.known || s.left >= s.min {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: fmt.Sprintf(
		"the disk has only %d MiB left, and new jobs need at least %d MiB: free space or lower min_free", s.left>>20, s.min>>20)}
}
