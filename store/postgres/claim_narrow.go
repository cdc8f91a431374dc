package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Two hundred kinds in one queue are two hundred lanes, most of them empty. A claim that searches each of them pays for all. So for a claim with many
// lanes the store remembers which lines are not empty, as it does for planned claims, and the statement reads only these. Jobs that another process
// puts into an empty lane are found when the memory is stale, or when a claim comes back short.
const (
	fewLanes      = 16   // with so few lanes in its scope, a claim searches all of them
	maxKnownLines = 1000 // maximum number of lines in the parameter of a statement
)

// knownLines returns the lines that a claim has to read, as a parameter; empty for all of them.
func (s *Store) knownLines(ctx context.Context, l *claimScan) (string, error) {
	if l.all || !s.wideScopes.has(l.scope) {
		return intArray(nil), nil
	}
	if err := s.ensureLines(ctx, l.scope); err != nil {
		return "", err
	}
	if err := s.ensureLanes(ctx); err != nil {
		return "", err
	}
	known := s.lines.inScope(l.scope)
	if len(known) > maxKnownLines {
		known = nil
	}
	l.narrowed = len(known) > 0
	return intArray(known), nil
}

// ensureLanes reads the rows of unknown lanes that have ready jobs.
func (s *Store) ensureLanes(ctx context.Context) error {
	unknown := s.lines.unreadLanes()
	if len(unknown) == 0 {
		return nil
	}
	send := &pgx.Batch{}
	send.Queue(s.sql["configure_planner"])
	s.readLanes(send, unknown)
	return s.work.SendBatch(ctx, send).Close()
}

// inScope returns the lines of a scope that have ready jobs. Lines of unknown lanes are included.
func (l *lineMemory) inScope(scope *lane.Scope) []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[int32]bool{}
	for p := range l.at {
		if l.lanes[max(p.lane, -p.lane)] == nil || l.covers(scope, p) {
			found[p.lane] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// intArray returns an array literal of integers.
func intArray(list []int32) string {
	var c column
	for _, n := range list {
		c.int(int(n))
	}
	return c.String()
}
