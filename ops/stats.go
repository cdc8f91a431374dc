package ops

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// Stats is a summary of the store.
type Stats struct {
	Queues  []QueueStats `json:"queues"` // by name
	Workers int          `json:"workers"`
	Slots   int          `json:"slots"` // of all workers: how many jobs can run at once
}

// QueueStats counts the jobs of one queue that have not completed. Ended jobs that are only kept are not counted.
type QueueStats struct {
	Queue      string    `json:"queue"`
	Ready      int       `json:"ready"` // due; holds may still keep them from being claimed
	Later      int       `json:"later"` // waiting for a start time, a retry, or members of their group
	Processing int       `json:"processing"`
	Dead       int       `json:"dead"`            // dead letters
	Oldest     time.Time `json:"oldest,omitzero"` // creation time of the oldest ready job
	Held       bool      `json:"held"`            // the queue is paused: none of its jobs is claimed
	// AtLeast lists the numbers (ready, later, processing, dead) at which the store stopped counting: there may be more.
	// The others are exact.
	AtLeast []string `json:"at_least,omitempty"`
}

// Stats returns the numbers of each queue and of the workers. Empty queues are included if a live worker claims from
// them. The amount that it reads is limited, whatever the size of the store.
func (s *Service) Stats(ctx context.Context) (Stats, error) {
	depths, err := s.store.Depths(ctx)
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
	stats := Stats{Workers: len(workers)}
	for _, worker := range workers {
		stats.Slots += worker.Slots
		for _, queue := range worker.Queues {
			if queue != everyQueue {
				queues[queue] = QueueStats{Queue: queue}
			}
		}
	}
	for _, depth := range depths {
		queues[depth.Queue] = statsOf(depth)
	}
	pauses := slices.DeleteFunc(holds, func(h store.Hold) bool { return h.Queue == "" || !h.Closed() || h.Retries })
	for queue, q := range queues {
		q.Held = slices.ContainsFunc(pauses, func(h store.Hold) bool { return h.Covers(queue) })
		queues[queue] = q
	}
	stats.Queues = slices.SortedFunc(maps.Values(queues), func(a, b QueueStats) int { return cmp.Compare(a.Queue, b.Queue) })
	return stats, nil
}

// everyQueue is what a worker that claims from every queue reports instead of names.
const everyQueue = "*"

// statsOf adds retries to Later, so that all waiting jobs are one number.
func statsOf(d store.Depth) QueueStats {
	q := QueueStats{Queue: d.Queue, Ready: d.Ready, Later: d.Later + d.Retrying, Processing: d.Processing, Dead: d.Dead, Oldest: d.Oldest}
	for _, number := range d.AtLeast {
		if number == "retrying" {
			number = "later"
		}
		if !slices.Contains(q.AtLeast, number) {
			q.AtLeast = append(q.AtLeast, number)
		}
	}
	return q
}
