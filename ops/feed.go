package ops

import (
	"context"
	"iter"
	"time"

	"github.com/holdfastdev/holdfast"
)

// mostTold is how many events are read at a time.
const mostTold = 500

// tailBeat is how often somebody who follows the feed looks for more.
const tailBeat = 250 * time.Millisecond

// Feed tells what happened after a number, in order, at most limit events. It tells what somebody listens for, and always what people
// did and what befell groups, breakers, duties and the like. What retention has deleted is said by Missed.
func (s *Service) Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error) {
	return s.store.Feed(ctx, after, limit)
}

// Latest tells the last events there are, at most limit.
func (s *Service) Latest(ctx context.Context, limit int) (holdfast.Feed, error) {
	head, err := s.head(ctx)
	if err != nil {
		return holdfast.Feed{}, err
	}
	page, err := s.store.Feed(ctx, max(head-int64(limit), 0), limit)
	page.Missed = 0 // nobody asked for what came before
	return page, err
}

// Tail follows the feed from a number on, page after page, and waits where it ends until ctx does. A page without events is told only
// when something was missed. It ends with the first error, and without one when ctx ends.
func (s *Service) Tail(ctx context.Context, after int64) iter.Seq2[holdfast.Feed, error] {
	return func(yield func(holdfast.Feed, error) bool) {
		tick := time.NewTicker(tailBeat)
		defer tick.Stop()
		for ctx.Err() == nil {
			page, err := s.store.Feed(ctx, after, mostTold)
			switch {
			case err != nil && ctx.Err() != nil:
				return
			case err != nil:
				yield(page, err)
				return
			}
			after = page.Next
			if len(page.Events) > 0 || page.Missed > 0 {
				if !yield(page, nil) {
					return
				}
				continue
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}
}

// head is the number of the newest event.
func (s *Service) head(ctx context.Context) (int64, error) {
	page, err := s.store.Feed(ctx, 0, 1)
	return page.Head, err
}
