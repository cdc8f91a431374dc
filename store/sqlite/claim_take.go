package sqlite

import (
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// take takes what was planned. It runs in the write transaction.
//
// If the plan is unchanged, it is taken as it is. Jobs that became ready after planning are left to the next claim. If
// anything has changed, or after jobs were set aside and others may take their place, take plans again in this
// transaction, where no other connection can write. A plan that was made inside the transaction cannot be outdated, so
// a second refusal means that the rows contradict each other.
func (p *claimPlanner) take(t *tx, e claimRequest, plan claimPlan) ([]store.Lease, error) {
	for refused, aside := 0, 0; refused < 2; {
		stands, err := plan.unchanged(t, &p.live)
		if err != nil {
			return nil, err
		}
		if stands {
			if err := setAside(t, plan.setAside); err != nil {
				return nil, err
			}
			if aside += len(plan.setAside); len(plan.setAside) == 0 || aside >= lane.MaxSetAside {
				t.wakeup.allQueues = t.wakeup.allQueues || aside >= lane.MaxSetAside
				return plan.write(t, e.Claim)
			}
		} else {
			refused++
			p.memory.drop(e.scope)
		}
		p.undoTurns(&plan)
		if plan, err = p.planOnWriter(t, e); err != nil || plan.empty() {
			return nil, err
		}
	}
	return nil, unavailable("jobs are ready but cannot be claimed: run `holdfast doctor`", nil)
}

// unchanged reports whether everything that the plan depends on is as it was when the plan was made, and finds where
// the rows of all shares are. It is what makes planning beside the writer safe:
//
//   - The holds and the edit counter are equal. So a hold that was committed before this transaction is obeyed, and the
//     facts that were read are those of the jobs.
//   - No line has more processing jobs than were counted. So a limit is never exceeded, even if another claim has used
//     the same capacity since.
//   - Every job is still at its position with the same token. So none was taken, moved or returned meanwhile.
func (p *claimPlan) unchanged(t *tx, counter *liveCounter) (bool, error) {
	read := claimReader{t.session}
	holds, edits, err := read.holds()
	if err != nil || edits != p.edits || !slices.Equal(holds, p.holds) {
		return false, err
	}
	if p.live != nil {
		live, err := counter.count(read)
		if err != nil {
			return false, err
		}
		for number, jobs := range live {
			if jobs > p.live[number] {
				return false, nil
			}
		}
	}
	for i := range p.shares {
		if p.shares[i].ranges, err = p.shares[i].findRanges(t); err != nil || p.shares[i].ranges == nil {
			return false, err
		}
	}
	return true, nil
}

// setAside moves jobs behind held tags out of the claims' way. Nothing else about them changes: it costs no attempt and
// no charge.
func setAside(t *tx, jobs []heldJob) error {
	for i := range jobs {
		a := &jobs[i]
		if _, err := t.exec("set_aside", a.line, a.priority, a.job, a.tag); err != nil {
			return err
		}
		if _, err := t.exec("delete_ready_range", a.line, a.priority, a.job, a.job); err != nil {
			return err
		}
	}
	return nil
}

// write removes the rows of all shares from holdfast_ready, pays the rate limits for them, and gives the jobs to the
// caller as one batch.
func (p *claimPlan) write(t *tx, c store.Claim) ([]store.Lease, error) {
	if len(p.leases) == 0 {
		return nil, nil
	}
	for i := range p.shares {
		for _, r := range p.shares[i].ranges {
			if _, err := t.exec("delete_ready_range", p.shares[i].line, r.first.priority, r.first.job, r.last.job); err != nil {
				return nil, err
			}
		}
	}
	if p.valves != nil {
		for _, spent := range p.valves.Spend(p.takenShares()) {
			if err := t.deposit(spent); err != nil {
				return nil, err
			}
		}
	}
	return startBatch(t, c, p.leases)
}

// A keyRange is a range of a line that contains only jobs of one share, all of one priority.
type keyRange struct{ first, last *readyRow }

// findRanges finds the ranges of a line in which the share's jobs are, so that each range can be deleted by key. There
// is one range for each priority; there are more only where another job lies in between, or a row without facts, which
// is left for the integrity check. The result is nil if a job of the share is gone, or has another token because it was
// claimed and returned meanwhile.
func (s *share) findRanges(t *tx) (all []keyRange, err error) {
	for rest := s.rows; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(at readyRow) bool { return at.priority != rest[0].priority })
		if n < 0 {
			n = len(rest)
		}
		matched, inRange := 0, false
		err = t.rows("read_ready_range", []any{s.line, rest[0].priority, rest[0].job, rest[n-1].job}, func(st *sqlite.Stmt) error {
			if matched == n || rest[matched].job != columnID(st, 0) || rest[matched].token != st.ColumnInt(1) {
				inRange = false
				return nil
			}
			if !inRange {
				all, inRange = append(all, keyRange{first: &rest[matched]}), true
			}
			all[len(all)-1].last = &rest[matched]
			matched++
			return nil
		})
		if err != nil || matched < n {
			return nil, err
		}
		rest = rest[n:]
	}
	return all, nil
}

// startBatch writes the batch row and completes the leases. The first c.Start jobs count as started. A job that was
// released or lost before counts as started from its claim on, so that losing it again is charged as a crash and not as
// a release.
func startBatch(t *tx, c store.Claim, leases []store.Lease) ([]store.Lease, error) {
	batch := &batch{id: holdfast.NewID(), worker: c.Worker, claimed: t.now, expires: t.at(c.Lease), members: make([]member, len(leases))}
	now, until := instant(batch.claimed), instant(batch.expires)
	for i := range leases {
		l := &leases[i]
		l.Batch, l.Worker, l.LeaseUntil, l.AsOf, l.StartedAt = batch.id, c.Worker, until, now, time.Time{}
		started := i < c.Start || l.Releases > 0 || l.Crashes > 0
		if started {
			l.StartedAt = now
		}
		batch.members[i] = member{job: l.ID, token: l.Token, failures: l.Failures, crashes: l.Crashes, releases: l.Releases, generation: l.Generation, started: started}
	}
	return leases, t.insertBatch(batch)
}
