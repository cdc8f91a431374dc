package sqlite

import (
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A batch is the jobs that were claimed together, as their row in holdfast_batch describes them in this transaction.
type batch struct {
	id           holdfast.ID
	worker, lost string // the worker that has the batch; the worker that lost it before, or empty
	claimed      int64
	expires      int64
	members      []member
	searchFrom   int // where find begins: members are settled roughly in the order in which they were claimed
}

// A member is a job of a batch, with the counters that the batch row carries for it.
type member struct {
	job                                            holdfast.ID
	token, failures, crashes, releases, generation int
	started                                        bool
	removed                                        bool  // removed from the batch in this call
	began                                          int64 // when the attempt started that ended in this call
}

// attemptWorker returns the worker that made the attempt: for a reclaimed batch the lost worker.
func (b *batch) attemptWorker() string {
	if b.lost != "" {
		return b.lost
	}
	return b.worker
}

// find returns the member for a job, or nil.
func (b *batch) find(job holdfast.ID) *member {
	for i := range b.members {
		at := (b.searchFrom + i) % len(b.members)
		if m := &b.members[at]; m.job == job && !m.removed {
			b.searchFrom = at + 1
			return m
		}
	}
	return nil
}

// heldMember is the fence. It returns the member of this batch for this job with this token, or nil if the caller's
// lease has ended: the batch row is gone, the job is no longer in it, or the job has a newer token. The row is read in
// the write transaction that also settles the job, so a worker that has lost its lease cannot change anything.
func (t *tx) heldMember(batch, job holdfast.ID, token int) (*batch, *member, error) {
	l, err := t.batch(batch)
	if err != nil {
		return nil, nil, err
	}
	return l, l.held(job, token), nil
}

// held returns the member for this job with this token, or nil.
func (b *batch) held(job holdfast.ID, token int) *member {
	if m := b.find(job); m != nil && m.token == token {
		return m
	}
	return nil
}

// batch returns a batch, and reads it once per call. A batch that does not exist has no members.
func (t *tx) batch(id holdfast.ID) (*batch, error) {
	if l := t.batches[id]; l != nil {
		return l, nil
	}
	found, err := t.readBatches("batch_find", id)
	if err != nil {
		return nil, err
	}
	found = append(found, &batch{id: id})
	if t.batches == nil {
		t.batches = map[holdfast.ID]*batch{}
	}
	t.batches[id] = found[0]
	return found[0], nil
}

func (t *tx) readBatches(name string, arg any) (all []*batch, err error) {
	err = t.rows(name, []any{arg}, func(st *sqlite.Stmt) error {
		l := &batch{id: columnID(st, 0), worker: st.ColumnText(1), lost: st.ColumnText(2), claimed: st.ColumnInt64(3), expires: st.ColumnInt64(4)}
		jobs := make([]byte, st.ColumnLen(5))
		st.ColumnBytes(5, jobs)
		l.members = readMembers(jobs, st.ColumnText(6))
		all = append(all, l)
		return nil
	})
	return all, err
}

// readMembers reads the two aligned columns of a batch row. If they are not aligned, it cannot be known which counters
// belong to which job, and the result is nil.
func readMembers(jobs []byte, text string) []member {
	members := make([]member, len(jobs)/len(holdfast.ID{}))
	for i := range members {
		m, started := &members[i], 0
		copy(m.job[:], jobs[i*len(m.job):])
		for _, into := range []*int{&m.token, &m.failures, &m.crashes, &m.releases, &m.generation, &started} {
			for text != "" && (text[0] < '0' || text[0] > '9') {
				text = text[1:]
			}
			if text == "" {
				return nil
			}
			for text != "" && text[0] >= '0' && text[0] <= '9' {
				*into = *into*10 + int(text[0]-'0')
				text = text[1:]
			}
		}
		m.started = started != 0
	}
	if strings.ContainsAny(text, "0123456789") {
		return nil
	}
	return members
}

// columns returns the remaining members as the columns of the batch row.
func (b *batch) columns() (jobs []byte, text string) {
	jobs = make([]byte, 0, len(b.members)*len(holdfast.ID{}))
	list := append(make([]byte, 0, len(b.members)*16), '[')
	for i := range b.members {
		m, started := &b.members[i], 0
		if m.removed {
			continue
		}
		if m.started {
			started = 1
		}
		if len(jobs) > 0 {
			list = append(list, ',')
		}
		jobs = append(jobs, m.job[:]...)
		separator := byte('[')
		for _, n := range [...]int{m.token, m.failures, m.crashes, m.releases, m.generation, started} {
			list = strconv.AppendInt(append(list, separator), int64(n), 10)
			separator = ','
		}
		list = append(list, ']')
	}
	return jobs, string(append(list, ']'))
}

// insertBatch writes the row of a new batch, and emits the events of its members.
func (t *tx) insertBatch(l *batch) error {
	name := store.EventProcessing
	if l.lost != "" {
		name = store.EventReclaimed
	}
	if t.listened.includes(name) {
		for i := range l.members {
			t.emit(name, &l.members[i].job, l.members[i].token)
		}
	}
	jobs, members := l.columns()
	_, err := t.exec("batch_add", l.id, l.worker, nullIfEmpty(l.lost), l.claimed, l.expires, jobs, members)
	return err
}

// saveBatch writes the remaining members of a batch. The row is deleted with the last member.
func (t *tx) saveBatch(l *batch) (err error) {
	if jobs, members := l.columns(); len(jobs) > 0 {
		_, err = t.exec("batch_update", l.id, jobs, members)
	} else {
		_, err = t.exec("batch_drop", l.id)
	}
	return err
}
