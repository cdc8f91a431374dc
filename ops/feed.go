package ops

import (
	"context"
	"iter"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// feedPage is the number of events that are read at a time.
const feedPage = 500

// tailInterval is how often Tail reads the feed for new events.
const tailInterval = 250 * time.Millisecond

// Feed returns up to limit events after a number, in order. It contains the job events that listeners ask for, and always
// actions of people and events of groups, breakers, duties and other subjects. Missed says how many events retention has
// deleted.
func (s *Service) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	return s.store.Feed(ctx, after, limit)
}

// LatestEvents returns the last events, at most limit.
func (s *Service) LatestEvents(ctx context.Context, limit int) (store.Feed, error) {
	head, err := s.head(ctx)
	if err != nil {
		return store.Feed{}, err
	}
	page, err := s.store.Feed(ctx, max(head-int64(limit), 0), limit)
	page.Missed = 0 // the caller did not ask for earlier events
	return page, err
}

// Tail yields pages of the feed after a number. At the end of the feed it waits for more until ctx ends. A page without
// events is yielded only if events were missed. The sequence ends after the first error, and without one when ctx ends.
func (s *Service) Tail(ctx context.Context, after int64) iter.Seq2[store.Feed, error] {
	return func(yield func(store.Feed, error) bool) {
		tick := time.NewTicker(tailInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			page, err := s.store.Feed(ctx, after, feedPage)
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

// head returns the number of the newest event.
func (s *Service) head(ctx context.Context) (int64, error) {
	page, err := s.store.Feed(ctx, 0, 1)
	return page.Head, err
}
