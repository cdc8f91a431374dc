package ops

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Stats is the store at a glance.
type Stats struct {
	Queues  []QueueStats `json:"queues"` // by name
	Workers int          `json:"workers"`
	Slots   int          `json:"slots"` // of all workers: so many jobs can be processed at once
}

// QueueStats tells how many jobs of one queue stand where.
type QueueStats struct {
	Queue      string    `json:"queue"`
	Ready      int       `json:"ready"` // claimable now, but for holds
	Later      int       `json:"later"` // scheduled, or waiting for a retry
	Processing int       `json:"processing"`
	Complete   int       `json:"complete"`
	Failed     int       `json:"failed"`
	Cancelled  int       `json:"cancelled"`
	Oldest     time.Time `json:"oldest,omitzero"` // creation of the oldest claimable job
	Held       bool      `json:"held"`            // the queue is paused: nothing of it is claimed
}

// Stats counts jobs by queue, and who works on them.
func (s *Service) Stats(ctx context.Context) (Stats, error) {
	counts, err := s.store.Counts(ctx)
	if err != nil {
		return Stats{}, err
	}
	holds, err := s.store.Holds(ctx)
	if err != nil {
		return Stats{}, err
	}
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return Stats{}, err
	}
	queues := map[string]QueueStats{}
	for _, count := range counts {
		queues[count.Queue] = queues[count.Queue].add(count)
	}
	stats := Stats{Workers: len(workers)}
	for _, worker := range workers {
		stats.Slots += worker.Slots
	}
	for queue := range queues {
		q := queues[queue]
		q.Held = slices.ContainsFunc(holds, func(h holdfast.Hold) bool { return h.Queue != "" && h.Closed() && !h.Retries && h.Covers(queue) })
		queues[queue] = q
	}
	stats.Queues = slices.SortedFunc(maps.Values(queues), func(a, b QueueStats) int { return cmp.Compare(a.Queue, b.Queue) })
	return stats, nil
}

// add counts one more line in.
func (q QueueStats) add(c holdfast.Count) QueueStats {
	q.Queue = c.Queue
	switch {
	case c.State == holdfast.Queued && c.Due:
		q.Ready += c.Jobs
		if q.Oldest.IsZero() || c.Oldest.Before(q.Oldest) {
			q.Oldest = c.Oldest
		}
	case c.State == holdfast.Queued:
		q.Later += c.Jobs
	case c.State == holdfast.Processing:
		q.Processing += c.Jobs
	case c.State == holdfast.Complete:
		q.Complete += c.Jobs
	case c.State == holdfast.Failed:
		q.Failed += c.Jobs
	case c.State == holdfast.Cancelled:
		q.Cancelled += c.Jobs
	}
	return q
}
