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

// QueueStats tells how many jobs of one queue stand where, of what has not ended well: ended jobs that are only kept are not counted.
type QueueStats struct {
	Queue      string    `json:"queue"`
	Ready      int       `json:"ready"` // claimable now, but for holds
	Later      int       `json:"later"` // scheduled, waiting for a retry, or for members of its group
	Processing int       `json:"processing"`
	Dead       int       `json:"dead"`            // dead letters
	Oldest     time.Time `json:"oldest,omitzero"` // creation of the oldest claimable job
	Held       bool      `json:"held"`            // the queue is paused: nothing of it is claimed
	// AtLeast names the numbers (ready, later, processing, dead) beyond which the store did not count: there may be more. The others are exact.
	AtLeast []string `json:"at_least,omitempty"`
}

// Stats tells how much waits, runs and has failed for good, by queue, and the workers. Queues in which nothing stands are told while a worker serves
// them. What it reads is bounded, however much there is.
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
			queues[queue] = QueueStats{Queue: queue}
		}
	}
	for _, depth := range depths {
		queues[depth.Queue] = statsOf(depth)
	}
	pauses := slices.DeleteFunc(holds, func(h holdfast.Hold) bool { return h.Queue == "" || !h.Closed() || h.Retries })
	for queue, q := range queues {
		q.Held = slices.ContainsFunc(pauses, func(h holdfast.Hold) bool { return h.Covers(queue) })
		queues[queue] = q
	}
	stats.Queues = slices.SortedFunc(maps.Values(queues), func(a, b QueueStats) int { return cmp.Compare(a.Queue, b.Queue) })
	return stats, nil
}

// statsOf has one number for all that waits, for whatever reason.
func statsOf(d holdfast.Depth) QueueStats {
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
