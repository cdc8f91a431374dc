package postgres

import (
	"context"
	"sync"

	"github.com/holdfastdev/holdfast"
)

// A path identifies a lane.
type path struct{ queue, kind, owner, dependency string }

func (e *entry) path() path { return path{e.Queue, e.Kind, e.Owner, e.Dependency} }

// A laneCache is the ids of the lanes that this process knows. A lane never changes and is never deleted, so its id is cached for good. It is safe for
// concurrent use.
type laneCache struct {
	db  *database
	ids sync.Map // path -> int32
}

// known returns the id of a lane, if it is cached.
func (l *laneCache) known(p path) (id int32, known bool) {
	found, known := l.ids.Load(p)
	if known {
		id = found.(int32)
	}
	return id, known
}

// find sets the lane of each entry. Missing lanes are created on a connection of the store, outside any transaction of the caller, so that the
// caller's transaction neither waits for another one's lane nor rolls a lane back that other entries use.
func (l *laneCache) find(ctx context.Context, via connections, entries []entry) error {
	unknown := map[path]bool{}
	for i := range entries {
		if id, ok := l.known(entries[i].path()); ok {
			entries[i].lane = id
		} else {
			unknown[entries[i].path()] = true
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	if err := l.make(ctx, via, unknown); err != nil {
		return err
	}
	for i := range entries {
		id, ok := l.known(entries[i].path())
		if !ok {
			return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "could not enqueue: a new lane was not found after it was created; try again"}
		}
		entries[i].lane = id
	}
	return nil
}

// make creates lanes that do not exist and caches the ids of all of them.
func (l *laneCache) make(ctx context.Context, via connections, unknown map[path]bool) error {
	var queues, kinds, owners, dependencies column
	for p := range unknown {
		queues.quote(p.queue)
		kinds.quote(p.kind)
		owners.quote(p.owner)
		dependencies.quote(p.dependency)
	}
	names := arrayArgs([]column{queues, kinds, owners, dependencies})
	return l.db.withRetries(ctx, "enqueue", true, func(ctx context.Context) error {
		if err := via.exec(ctx, l.db.sql["lane_make"], names...); err != nil {
			return err
		}
		return via.query(ctx, l.db.sql["lane_find"], names, func(scan func(...any) error) error {
			var id int32
			var p path
			err := scan(&id, &p.queue, &p.kind, &p.owner, &p.dependency)
			if err == nil {
				l.ids.Store(p, id)
			}
			return err
		})
	})
}
