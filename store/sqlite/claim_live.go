package sqlite

import "github.com/holdfastdev/holdfast"

// A liveJob is a processing job under one token. Its lane cannot change while it is processing.
type liveJob struct {
	job   holdfast.ID
	token int
}

// A liveCounter counts processing jobs by line, for holds that limit them. Limits are counted from the batches that
// exist, never from a counter that a crash could leave wrong. The counter only remembers the lane of each job while the
// job is processing.
type liveCounter struct {
	lanes map[liveJob]int64
}

// count returns how many jobs of each line are processing. It reads the members of all batches.
func (c *liveCounter) count(r claimReader) (live map[int64]int, err error) {
	members, err := r.liveMembers()
	if err != nil {
		return nil, err
	}
	if err := c.findLanes(r, members); err != nil {
		return nil, err
	}
	live, kept := map[int64]int{}, make(map[liveJob]int64, len(members))
	for i := range members {
		m := &members[i]
		at := liveJob{m.job, m.token}
		number := c.lanes[at]
		if kept[at] = number; number == 0 {
			continue // a job without facts is left for the integrity check
		}
		if m.failures > 0 {
			number = -number
		}
		live[number]++
	}
	c.lanes = kept
	return live, nil
}

// findLanes looks up the lanes of members that are not remembered yet.
func (c *liveCounter) findLanes(r claimReader, members []member) error {
	if c.lanes == nil {
		c.lanes = map[liveJob]int64{}
	}
	fresh := map[holdfast.ID]int{}
	var jobs []holdfast.ID
	for i := range members {
		if _, known := c.lanes[liveJob{members[i].job, members[i].token}]; !known {
			fresh[members[i].job] = members[i].token
			jobs = append(jobs, members[i].job)
		}
	}
	return r.jobLanes(jobs, func(id holdfast.ID, number int64) { c.lanes[liveJob{id, fresh[id]}] = number })
}
