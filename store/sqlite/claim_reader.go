package sqlite

import (
	"strconv"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A claimReader reads all that a claim plan depends on, on one connection. The caller keeps one transaction open while
// it uses a reader, so that all answers are of one moment. It changes nothing.
type claimReader struct {
	session *session
}

// holds reads all holds and the edit counter. A claim plan is valid only while both are unchanged.
func (r claimReader) holds() (all []holdRow, edits int64, err error) {
	err = r.session.rows("hold_read", nil, func(st *sqlite.Stmt) error {
		if edits = st.ColumnInt64(0); st.ColumnIsNull(1) {
			return nil
		}
		all = append(all, holdRow{scope: st.ColumnText(1), name: st.ColumnText(2), source: st.ColumnText(3), retries: st.ColumnInt(4) != 0, atMost: st.ColumnInt(5),
			rated: !st.ColumnIsNull(6), perSecond: st.ColumnFloat(6), burst: st.ColumnFloat(7), level: st.ColumnFloat(8), levelAt: st.ColumnInt64(9), until: st.ColumnInt64(10)})
		return nil
	})
	return all, edits, err
}

// kinds reads the declared dependencies of kinds.
func (r claimReader) kinds() (map[string]string, error) {
	kinds := map[string]string{}
	err := r.session.rows("kind_read", nil, func(st *sqlite.Stmt) error {
		kinds[st.ColumnText(0)] = st.ColumnText(1)
		return nil
	})
	return kinds, err
}

// weights reads the weights of owners.
func (r claimReader) weights() (map[string]float64, error) {
	weights := map[string]float64{}
	err := r.session.rows("read_weights", nil, func(st *sqlite.Stmt) error {
		lane.AddWeight(weights, st.ColumnText(0), st.ColumnText(1))
		return nil
	})
	return weights, err
}

// lines reads the numbers of up to most non-empty lines, walking from line to line through holdfast_ready.
func (r claimReader) lines(most int) ([]int64, error) {
	all := []int64{}
	err := r.session.rows("find_lines", []any{most}, func(st *sqlite.Stmt) error {
		all = append(all, st.ColumnInt64(0))
		return nil
	})
	return all, err
}

// linesOf calls each with the number of every non-empty line of these lanes. It searches each line by its key.
func (r claimReader) linesOf(of []*lane.Lane, each func(number int64)) error {
	return r.session.rows("probe_lines", []any{lineNumbers(of)}, func(st *sqlite.Stmt) error {
		each(st.ColumnInt64(0))
		return nil
	})
}

// lineNumbers returns the numbers of the lanes' lines as a JSON list.
func lineNumbers(of []*lane.Lane) string {
	list := append(make([]byte, 0, 16*len(of)), '[')
	for i, l := range of {
		for j, number := range l.Lines() {
			if i+j > 0 {
				list = append(list, ',')
			}
			list = strconv.AppendInt(list, number, 10)
		}
	}
	return string(append(list, ']'))
}

// A keySpan is a part of a line: up to limit keys from one priority to another. In the first priority it begins behind
// the job after, or at the first job if after is nil.
type keySpan struct {
	line     int64
	from, to int64
	after    []byte
	limit    int
}

// keys reads the keys of a span and appends them to a list.
func (r claimReader) keys(to []lane.Key, s keySpan) ([]lane.Key, error) {
	err := r.session.rows("peek", []any{s.line, s.from, s.after, s.to, s.limit}, func(st *sqlite.Stmt) error {
		to = append(to, lane.Key{Priority: int16(st.ColumnInt64(0)), Job: columnID(st, 1)})
		return nil
	})
	return to, err
}

// jobs calls each for every job of a span, with the columns that readFacts reads, the position and the counters.
func (r claimReader) jobs(s keySpan, each func(*sqlite.Stmt) error) error {
	return r.session.rows("read_ready_jobs", []any{s.line, s.limit, s.from, s.to, s.after}, each)
}

// firstRows calls each for the first rows of a line: jobs with their counters, without their facts.
func (r claimReader) firstRows(number int64, limit int, each func(priority int64, m member)) error {
	return r.session.rows("read_ready_rows", []any{number, limit}, func(st *sqlite.Stmt) error {
		each(st.ColumnInt64(0), member{job: columnID(st, 1), token: st.ColumnInt(2), failures: st.ColumnInt(3), crashes: st.ColumnInt(4), releases: st.ColumnInt(5), generation: st.ColumnInt(6)})
		return nil
	})
}

// facts calls each for every job that has facts, with the columns that readFacts reads. Jobs come in the order of their
// ids within each part of the list that is read at once.
func (r claimReader) facts(jobs []holdfast.ID, each func(*sqlite.Stmt) error) error {
	return r.session.rowsByID("read_facts", jobs, each)
}

// priorities reads the priorities that have jobs in a line, lowest number first.
func (r claimReader) priorities(number int64) (all []int16, err error) {
	err = r.session.rows("find_priorities", []any{number}, func(st *sqlite.Stmt) error {
		all = append(all, int16(st.ColumnInt64(0)))
		return nil
	})
	return all, err
}

// liveMembers reads the members of all batches.
func (r claimReader) liveMembers() (members []member, err error) {
	err = r.session.rows("read_live_members", nil, func(st *sqlite.Stmt) error {
		jobs := make([]byte, st.ColumnLen(0))
		st.ColumnBytes(0, jobs)
		members = append(members, readMembers(jobs, st.ColumnText(1))...)
		return nil
	})
	return members, err
}

// jobLanes calls each with the lane of every job that has facts.
func (r claimReader) jobLanes(jobs []holdfast.ID, each func(job holdfast.ID, number int64)) error {
	return r.session.rowsByID("find_job_lanes", jobs, func(st *sqlite.Stmt) error {
		each(columnID(st, 0), st.ColumnInt64(1))
		return nil
	})
}
