package sqlite

import (
	"math"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A claimPlan is what a claim would take, with everything that the plan depends on: the holds, the edit counter, the
// counts of live jobs, and the position and token of each job.
type claimPlan struct {
	holds    []holdRow
	edits    int64 // holdfast_feed.edits: how often facts of queued jobs were changed
	shares   []share
	leases   []store.Lease // with the facts of the jobs, in the order of the claim
	sorted   bool          // leases are in order already
	bytes    int           // the size of their arguments and checkpoints
	full     bool          // the jobs have more bytes than the claim may have
	setAside []heldJob     // jobs that wait behind a held tag and are to be set aside

	// Only when a hold limits how many jobs pass.
	valves *lane.Valves
	live   map[int64]int // processing jobs by line; nil: not counted
}

// A share is what a claim takes from one line: its first jobs, or the first jobs of one priority.
type share struct {
	keySpan
	lane   *lane.Lane
	rows   []readyRow
	ranges []keyRange // where these rows are now, found when they are taken
}

// A readyRow is the position of a job in its line, with the token that the claim will give it.
type readyRow struct {
	priority int64
	job      holdfast.ID
	token    int
}

// A heldJob is a ready job that has a held tag.
type heldJob struct {
	readyRow
	line int64
	tag  string
}

// empty reports whether there is nothing to take and nothing to set aside.
func (p *claimPlan) empty() bool { return len(p.leases) == 0 && len(p.setAside) == 0 }

// reserve allocates memory for the leases at once, by what the last claim took: leases are large.
func (p *claimPlan) reserve(limit, brought int) {
	if brought > 0 && p.leases == nil {
		p.leases = make([]store.Lease, 0, min(limit, brought+brought/8))
	}
}

// addShares adds picked shares to the plan. Their rows are not read yet.
func (p *claimPlan) addShares(picked ...lane.Share) {
	for i := range picked {
		s := &picked[i]
		low, high := s.Priorities()
		p.shares = append(p.shares, share{keySpan: keySpan{line: s.Line, from: int64(low), to: int64(high), limit: s.Jobs}, lane: s.Lane})
	}
}

// takenShares returns how many jobs the plan takes from each line.
func (p *claimPlan) takenShares() (all []lane.Share) {
	for i := range p.shares {
		all = append(all, lane.Share{Lane: p.shares[i].lane, Line: p.shares[i].line, Jobs: len(p.shares[i].rows)})
	}
	return all
}

// readShares reads the jobs of all shares that were not read yet, and puts the leases into the order of the claim.
func (p *claimPlan) readShares(v *claimView) error {
	for i := range p.shares {
		if p.shares[i].rows != nil {
			continue // its rows were read already
		}
		if err := p.readShare(v, &p.shares[i]); err != nil {
			return err
		}
	}
	p.shares = slices.DeleteFunc(p.shares, func(s share) bool { return len(s.rows) == 0 })
	if len(p.shares) > 1 && !p.sorted {
		p.sort()
	}
	return nil
}

// readShare reads the facts of a share's jobs. Jobs behind a held tag go to setAside; the share keeps the others. It
// stops when the claim has as many bytes as it may have; the first job is always read.
func (p *claimPlan) readShare(from *claimView, of *share) error {
	of.rows = make([]readyRow, 0, min(of.limit, max(cap(p.leases), 16)))
	return from.read.jobs(of.keySpan, func(st *sqlite.Stmt) error {
		if p.full {
			return nil
		}
		p.leases = append(p.leases, store.Lease{})
		l := &p.leases[len(p.leases)-1]
		readFacts(st, l)
		l.Token, l.Failures, l.Crashes = st.ColumnInt(20), st.ColumnInt(21), st.ColumnInt(22)
		l.Releases, l.Generation = st.ColumnInt(23), st.ColumnInt(24)
		at := readyRow{st.ColumnInt64(19), l.ID, l.Token}
		if tag, held := from.valves.Held(l.Tags); held {
			p.setAside = append(p.setAside, heldJob{at, of.line, tag})
			p.leases = p.leases[:len(p.leases)-1]
			return nil
		}
		of.rows = append(of.rows, at)
		p.bytes += len(l.Args) + len(l.Checkpoint)
		p.full = from.bytes > 0 && p.bytes > from.bytes && len(p.leases) > 1
		return nil
	})
}

// appendRun adds a run to the plan: to the last share if that is of the same line, otherwise as a new share.
func (p *claimPlan) appendRun(s share) {
	if n := len(p.shares); n > 0 && p.shares[n-1].line == s.line {
		p.shares[n-1].rows = append(p.shares[n-1].rows, s.rows...)
		return
	}
	p.shares = append(p.shares, s)
}

// sort puts the leases of several shares into the order of the claim. Leases are large, so each is moved only once.
func (p *claimPlan) sort() {
	order := make([]*store.Lease, len(p.leases))
	for i := range p.leases {
		order[i] = &p.leases[i]
	}
	slices.SortFunc(order, func(a, b *store.Lease) int {
		return lane.Key{Priority: a.Priority, Job: a.ID}.Compare(lane.Key{Priority: b.Priority, Job: b.ID})
	})
	sorted := make([]store.Lease, len(order))
	for i, l := range order {
		sorted[i] = *l
	}
	p.leases = sorted
}

// wholeLine returns the span of a line's first keys, of all priorities.
func wholeLine(number int64, limit int) keySpan {
	return keySpan{line: number, from: math.MinInt16, to: math.MaxInt16, limit: limit}
}
