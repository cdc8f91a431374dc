package schedule

import "time"

const (
	// onTime is how late a slot may be before it counts as missed if a newer one is due too. The newest slot has more time.
	onTime       = 10 * time.Second
	newestOnTime = time.Minute

	// maxBehind is how far back slots of a cron expression are searched. Older slots are not counted.
	maxBehind = 700 * 24 * time.Hour
)

// Next returns the first n slots after a time, also of a paused schedule.
func (s Schedule) Next(after time.Time, n int) []time.Time {
	next, slots := s.slots(after), []time.Time(nil)
	for len(slots) < n {
		slot := next()
		if slot.IsZero() {
			break
		}
		slots = append(slots, slot)
	}
	return slots
}

// slots returns an iterator over the slots after a time. It returns zero when there are no more.
func (s Schedule) slots(after time.Time) func() time.Time {
	if s.Cron == "" {
		return s.intervals(after)
	}
	p, err := s.plan()
	if err != nil {
		return func() time.Time { return time.Time{} }
	}
	return func() time.Time {
		if after = p.next(after); after.IsZero() {
			return after
		}
		return after
	}
}

func (s Schedule) intervals(after time.Time) func() time.Time {
	start := s.CreatedAt.UTC().Truncate(time.Second)
	if s.Every < MinEvery {
		return func() time.Time { return time.Time{} }
	}
	if after.Before(start) {
		after = start
	}
	slot := start.Add(after.Sub(start) / s.Every * s.Every)
	return func() time.Time {
		slot = slot.Add(s.Every)
		return slot
	}
}

// since returns the time after which due slots are searched.
func (s Schedule) since(now time.Time) time.Time {
	since := s.Last
	if since.Before(s.CreatedAt) {
		since = s.CreatedAt
	}
	if earliest := now.Add(-maxBehind); s.Cron != "" && since.Before(earliest) {
		since = earliest
	}
	return since
}

// due returns the newest keep slots that are due since Last, and how many are due.
func (s Schedule) due(now time.Time, keep int) (newest []time.Time, count int) {
	since := s.since(now)
	if s.Cron == "" && s.Every >= MinEvery { // an interval of a second may have missed a million slots
		start := s.CreatedAt.UTC().Truncate(time.Second)
		if far := now.Sub(start)/s.Every - time.Duration(keep); far > 0 {
			skip := start.Add(far * s.Every)
			if done := since.Sub(start) / s.Every; far > done {
				count, since = int(far-done), skip
			}
		}
	}
	for next := s.slots(since); ; count++ {
		slot := next()
		if slot.IsZero() || slot.After(now) {
			return newest, count
		}
		if len(newest) == keep {
			newest = append(newest[:0], newest[1:]...)
		}
		newest = append(newest, slot)
	}
}

// Due returns the slots that make a job now, the number of slots that make none, and the schedule as it is afterwards. An extra
// run is a slot of its own, after the others. If nothing is due, the schedule is returned unchanged.
func (s Schedule) Due(now time.Time) (slots []time.Time, skipped int, after Schedule) {
	after = s
	if s.PausedAt(now) {
		after, skipped = s.pass(now)
	} else {
		if s.Paused { // the pause ended by itself
			after, skipped = s.pass(s.PausedUntil)
			after.Paused, after.PausedUntil, after.Actor, after.Reason = false, time.Time{}, "", ""
		}
		var missed int
		slots, missed, after = after.come(now)
		skipped += missed
	}
	for after.Ran < after.RunNow {
		after.Ran++
		after.Runs++
		// The time is never that of a slot, and different for each extra run.
		slots = append(slots, now.UTC().Truncate(time.Microsecond).Add(time.Duration(1+after.Ran%900)))
	}
	return slots, skipped, after
}

// pass skips the slots up to a time.
func (s Schedule) pass(until time.Time) (Schedule, int) {
	newest, count := s.due(until, 1)
	if count > 0 {
		s.Last = newest[0]
		s.Skipped += count
	}
	return s, count
}

// come handles due slots as Missed says.
func (s Schedule) come(now time.Time) (slots []time.Time, skipped int, after Schedule) {
	keep := int(onTime/time.Second) + 1
	if s.Missed == All {
		keep += orElse(s.Most, defaultMost)
	}
	newest, count := s.due(now, keep)
	if count == 0 {
		return nil, 0, s
	}
	last := newest[len(newest)-1]
	late := 0 // how many of the newest slots are missed
	for late < len(newest) && !punctual(newest[late], last, now) {
		late++
	}
	slots = newest[late:]
	switch {
	case s.Missed == All:
		slots = newest[late-min(late, orElse(s.Most, defaultMost)):]
	case s.Missed != Skip && len(slots) == 0:
		slots = newest[len(newest)-1:]
	}
	s.Last = last
	s.Runs += len(slots)
	s.Skipped += count - len(slots)
	return slots, count - len(slots), s
}

// punctual reports whether a slot is at most slightly late.
func punctual(slot, newest, now time.Time) bool {
	age := now.Sub(slot)
	return age <= onTime || slot.Equal(newest) && age <= newestOnTime
}
