package sqlite

import (
	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

// A liveJob is a processing job under one token. Its lane cannot change while it is processing.
type liveJob struct {
	job   holdfast.ID
	token int
}

// countLive counts the processing jobs by line, for holds that limit them. It reads the members of all batches; their
// lanes are looked up once and remembered while the jobs are processing.
func (p *claimPlanner) countLive(s *session) (live map[int64]int, err error) {
	var members []member
	err = s.rows("read_live_members", nil, func(st *sqlite.Stmt) error {
		jobs := make([]byte, st.ColumnLen(0))
		st.ColumnBytes(0, jobs)
		members = append(members, readMembers(jobs, st.ColumnText(1))...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := p.findLiveLanes(s, members); err != nil {
		return nil, err
	}
	live, kept := map[int64]int{}, make(map[liveJob]int64, len(members))
	for i := range members {
		m := &members[i]
		at := liveJob{m.job, m.token}
		number := p.liveLanes[at]
		if kept[at] = number; number == 0 {
			continue // a job without facts is left for the integrity check
		}
		if m.failures > 0 {
			number = -number
		}
		live[number]++
	}
	p.liveLanes = kept
	return live, nil
}

// findLiveLanes looks up the lanes of members that are not remembered yet.
func (p *claimPlanner) findLiveLanes(s *session, members []member) error {
	if p.liveLanes == nil {
		p.liveLanes = map[liveJob]int64{}
	}
	fresh := map[holdfast.ID]int{}
	var jobs []holdfast.ID
	for i := range members {
		if _, known := p.liveLanes[liveJob{members[i].job, members[i].token}]; !known {
			fresh[members[i].job] = members[i].token
			jobs = append(jobs, members[i].job)
		}
	}
	return s.rowsByID("find_job_lanes", jobs, func(st *sqlite.Stmt) error {
		id := columnID(st, 0)
		p.liveLanes[liveJob{id, fresh[id]}] = st.ColumnInt64(1)
		return nil
	})
}

// idsPerQuery is how many ids a statement with a list of ids has.
const idsPerQuery = 16

// rowsByID runs a statement with a list of ids, idsPerQuery ids at a time, and calls each for every row. each may be
// nil if the statement returns no rows.
func (s *session) rowsByID(name string, jobs []holdfast.ID, each func(*sqlite.Stmt) error) error {
	for len(jobs) > 0 {
		args := make([]any, idsPerQuery)
		n := min(idsPerQuery, len(jobs))
		for i := range n {
			args[i] = jobs[i]
		}
		jobs = jobs[n:]
		if err := s.rows(name, args, each); err != nil {
			return err
		}
	}
	return nil
}
