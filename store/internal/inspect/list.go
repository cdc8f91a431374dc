package inspect

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const (
	usualPage   = 50
	largestPage = 200
	// largestBytes is the size at which a page of jobs or events ends before its limit, with a cursor: 200 jobs may
	// have 400 MiB of arguments and results.
	largestBytes = 8 << 20
)

// Jobs lists the matching jobs, newest first. The cursor leads to the next page and is empty on the last. A page ends
// before its limit if its jobs have about 8 MiB. If the filter bounds how many rows are read, the cursor may also lead
// on from where reading stopped.
func (i *Inspector) Jobs(ctx context.Context, f store.Filter) ([]holdfast.Job, string, error) {
	after, err := checkFilter(&f)
	if err != nil {
		return nil, "", err
	}
	now, err := i.now(ctx)
	if err != nil {
		return nil, "", err
	}
	// One job more than the page shows whether there is another page.
	p := &picker{dialect: i.dialect, filter: f, after: after, now: now, limit: f.Limit + 1}
	var pick query
	if f.MaxScan > 0 {
		pick, err = i.boundedQuery(ctx, p)
	} else {
		pick = p.pick()
	}
	if err != nil || pick.text == "" {
		return nil, "", err
	}
	jobs, full, err := i.page(ctx, pick, "")
	switch {
	case err != nil:
		return nil, "", err
	case len(jobs) > f.Limit:
		jobs = jobs[:f.Limit]
		return jobs, cursorTo(jobs[f.Limit-1].ID), nil
	case full:
		return jobs, cursorTo(jobs[len(jobs)-1].ID), nil
	case !p.floor.IsZero():
		return jobs, cursorTo(p.floor), nil
	}
	return jobs, "", nil
}

// cursorTo returns the cursor that leads to jobs older than this one.
func cursorTo(id holdfast.ID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// checkFilter refuses a filter that makes no sense, fills in its limit, and returns the job that its cursor names.
func checkFilter(f *store.Filter) (after holdfast.ID, err error) {
	switch f.State {
	case "", holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled:
	default:
		return after, invalid("state %.40q: use queued, processing, complete, failed or cancelled", f.State)
	}
	if f.Limit, err = pageSize(f.Limit, "jobs"); err != nil {
		return after, err
	}
	if f.OlderThan < 0 || f.NewerThan < 0 {
		return after, invalid("an age below zero: give a positive duration")
	}
	if f.Generation < 0 || f.Generation > math.MaxInt32 {
		return after, invalid("generation %d: give 1 for the first, 2 after one manual retry, or 0 for any", f.Generation)
	}
	if f.MaxScan < 0 {
		return after, invalid("look %d: give the largest number of jobs to read, or 0 for no limit", f.MaxScan)
	}
	for _, text := range []string{f.Kind, f.Queue, f.Owner, f.Tag, f.Code, f.Fingerprint, f.Dependency, f.Worker} {
		if err := isText(text); err != nil {
			return after, err
		}
	}
	if f.Cursor == "" {
		return after, nil
	}
	return cursorID(f.Cursor)
}

// A query is a text with its arguments.
type query struct {
	text string
	args []any
}

// A picker builds the query for the ids of one page. Its texts are fixed; values from a caller are always bound as
// arguments.
type picker struct {
	dialect string
	filter  store.Filter
	after   holdfast.ID
	floor   holdfast.ID // jobs with lower ids are not read
	now     time.Time
	limit   int
	any     bool // the order does not matter, as for a count
	args    []any
}

// A place is a table that contains jobs of some state, and the condition for that state. The condition is written out,
// not bound, so that the partial indexes apply.
type place struct {
	table string
	where string
	lanes bool // its rows have a lane
	ended bool // its rows have the code and fingerprint of the failure that ended the job
}

var (
	ready      = place{table: "holdfast_ready", lanes: true}
	later      = place{table: "holdfast_later"}
	leased     = place{table: "holdfast_leased"}
	complete   = place{table: "holdfast_finished", where: "p.state = 'complete'"}
	cancelled  = place{table: "holdfast_finished", where: "p.state = 'cancelled'"}
	ended      = place{table: "holdfast_finished"}
	failed     = place{table: "holdfast_finished", where: "p.state = 'failed'", ended: true}
	benign     = place{table: "holdfast_finished", where: "p.state = 'failed' AND p.benign = TRUE", ended: true}
	unexpected = place{table: "holdfast_finished", where: "p.state = 'failed' AND p.benign = FALSE", ended: true}
	deadLetter = place{table: "holdfast_finished", where: "p.state = 'failed' AND p.discarded_at IS NULL", ended: true}
)

// pick builds the query for one page of ids. An empty text means that nothing can match.
func (p *picker) pick() query {
	places := p.places()
	if places == nil {
		if p.impossible() {
			return query{}
		}
		table, id := "holdfast_job j", "j.id"
		if !p.filter.Redrive.IsZero() {
			table, id = table+" JOIN "+p.chosenJobs()+" ON v.job = j.id", "v.job"
		}
		return query{p.branch(table, id, slices.Concat(p.nameConditions("j"), p.factConditions(), p.groupCondition())), p.args}
	}
	branches := make([]string, len(places))
	for n, from := range places {
		branches[n] = p.from(from)
	}
	return p.merged(branches)
}

// merged returns the newest ids of all branches.
func (p *picker) merged(branches []string) query {
	if len(branches) == 1 {
		return query{branches[0], p.args}
	}
	for n, branch := range branches {
		branches[n] = fmt.Sprintf("SELECT id FROM (%s) AS branch%d", branch, n)
	}
	text := "SELECT id FROM (" + strings.Join(branches, " UNION ALL ") + ") AS branches"
	return query{text + p.newest("id"), p.args}
}

// newest ends a read of ids: with the newest ones or, if the order does not matter, with the first ones found.
func (p *picker) newest(id string) string {
	if p.any {
		return " LIMIT " + p.bind(p.limit)
	}
	return " ORDER BY " + id + " DESC LIMIT " + p.bind(p.limit)
}

// impossible reports, if there is no place to start from, whether nothing can match; otherwise all jobs are read.
func (p *picker) impossible() bool {
	f := p.filter
	return f.State != "" || f.DeadLetters || f.Benign != nil || f.Retrying || f.Worker != ""
}

// places returns the tables to start from, so that a filter for few jobs never reads many. None means all jobs.
func (p *picker) places() []place {
	f := p.filter
	for _, only := range []struct {
		asked bool
		state holdfast.State
	}{{f.DeadLetters, holdfast.Failed}, {f.Benign != nil, holdfast.Failed}, {f.Retrying, holdfast.Queued}, {f.Worker != "", holdfast.Processing}} {
		if only.asked && f.State != "" && f.State != only.state {
			return nil
		}
		if only.asked {
			f.State = only.state
		}
	}
	switch {
	case f.DeadLetters && f.Benign != nil && *f.Benign:
		return nil // a benign failure is no dead letter
	case f.DeadLetters:
		return []place{deadLetter}
	case f.Benign != nil && *f.Benign:
		return []place{benign}
	case f.Benign != nil:
		return []place{unexpected}
	}
	switch f.State {
	case holdfast.Queued:
		return []place{ready, later}
	case holdfast.Processing:
		return []place{leased}
	case holdfast.Complete:
		if f.Code != "" || f.Fingerprint != "" {
			return nil // a complete job has no last failure
		}
		return []place{complete}
	case holdfast.Failed:
		return []place{failed}
	case holdfast.Cancelled:
		return []place{cancelled}
	}
	if f.Code != "" || f.Fingerprint != "" {
		return []place{ready, later, leased, failed, cancelled}
	}
	if f.Generation > 0 {
		return []place{ready, later, leased, ended}
	}
	return nil
}

// from builds the branch that starts at one place. Facts are joined only if the filter needs them.
func (p *picker) from(at place) string {
	if at == leased {
		return p.scanBranch(leasedScan)
	}
	table := at.table + " p"
	var where []string
	if at.where != "" {
		where = append(where, at.where)
	}
	var facts []string
	if !at.lanes {
		facts = p.nameConditions("j")
	} else if names := p.nameConditions("n"); len(names) > 0 {
		lanes := "holdfast_lane n WHERE " + strings.Join(names, " AND ")
		where = append(where, "p.lane IN (SELECT n.id FROM "+lanes+" UNION ALL SELECT -n.id FROM "+lanes+")")
	}
	facts = append(facts, p.factConditions()...)
	if !p.filter.Redrive.IsZero() {
		facts = append(facts, p.groupCondition()...)
	}
	few := !p.filter.Redrive.IsZero() || !p.filter.Group.IsZero()
	if few && at.lanes {
		facts = append(facts, p.eitherLine("p.lane", "j.lane"), "p.priority = j.priority") // from the job to its line by key
	}
	if len(facts) > 0 {
		table += " JOIN holdfast_job j ON j.id = p.job"
		where = append(where, facts...)
	}
	id := "p.job"
	if few {
		table, id = table+" JOIN "+p.chosenJobs()+" ON v.job = p.job", "v.job"
	}
	return p.branch(table, id, slices.Concat(where, p.stateConditions(), p.failureConditions(at)))
}

// stateConditions returns the conditions on the state row of a job.
func (p *picker) stateConditions() (where []string) {
	if p.filter.Generation > 0 {
		where = append(where, "p.generation = "+p.bind(p.filter.Generation))
	}
	if p.filter.Retrying {
		where = append(where, "p.failures > 0")
	}
	if p.filter.Worker != "" {
		where = append(where, "p.worker = "+p.bind(p.filter.Worker))
	}
	return where
}

// eitherLine returns the condition that a line is one of the two of a lane. PostgreSQL needs an array to find the job
// in it by key; with IN it would find the line and read all of it.
func (p *picker) eitherLine(line, lane string) string {
	if p.dialect == Postgres {
		return fmt.Sprintf("%s = ANY (ARRAY[%s, -%s])", line, lane, lane)
	}
	return fmt.Sprintf("%s IN (%s, -%s)", line, lane, lane)
}

// chosenJobs returns the jobs that the filter's redrive took, or else the members of its group, in the order of that
// key.
func (p *picker) chosenJobs() string {
	if p.filter.Redrive.IsZero() {
		return "(SELECT d.id AS job FROM holdfast_job d WHERE d.group_id = " + p.bind(p.filter.Group) + ") AS v"
	}
	return "(SELECT d.job FROM holdfast_redriven d WHERE d.redrive = " + p.bind(p.filter.Redrive) + ") AS v"
}

// groupCondition returns the condition that a job is in the filter's group, where the jobs are not chosen by group.
func (p *picker) groupCondition() []string {
	if p.filter.Group.IsZero() {
		return nil
	}
	return []string{"j.group_id = " + p.bind(p.filter.Group)}
}

// branch returns one ordered, limited read of ids.
func (p *picker) branch(table, id string, where []string) string {
	if !p.after.IsZero() {
		where = append(where, id+" < "+p.bind(p.after))
	}
	if !p.floor.IsZero() {
		where = append(where, id+" >= "+p.bind(p.floor))
	}
	text := "SELECT " + id + " AS id FROM " + table
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	return text + p.newest(id)
}

// factConditions returns the conditions on facts of a job that its lane does not have.
func (p *picker) factConditions() []string {
	var where []string
	if p.filter.Tag != "" && p.dialect == Postgres {
		where = append(where, p.bind(p.filter.Tag)+" = ANY (j.tags)")
	}
	if p.filter.Tag != "" && p.dialect == SQLite {
		// Damaged tags match nothing, and do not end the list.
		where = append(where, "CASE WHEN json_valid(j.tags) THEN EXISTS (SELECT 1 FROM json_each(j.tags) WHERE value = "+p.bind(p.filter.Tag)+") ELSE false END")
	}
	if p.filter.OlderThan > 0 {
		where = append(where, "j.created_at <= "+p.bind(p.now.Add(-p.filter.OlderThan)))
	}
	if p.filter.NewerThan > 0 {
		where = append(where, "j.created_at > "+p.bind(p.now.Add(-p.filter.NewerThan)))
	}
	return where
}

// nameConditions returns the conditions on kind, queue, owner and dependency. Jobs and lanes have these columns.
func (p *picker) nameConditions(table string) []string {
	var where []string
	if p.filter.Kind != "" {
		where = append(where, table+".kind = "+p.bind(p.filter.Kind))
	}
	if p.filter.Queue != "" {
		where = append(where, table+".queue = "+p.bind(p.filter.Queue))
	}
	if p.filter.Owner != "" {
		where = append(where, table+".owner = "+p.bind(p.filter.Owner))
	}
	if p.filter.Dependency != "" {
		where = append(where, dependency(table)+" = "+p.bind(p.filter.Dependency))
	}
	return where
}

// dependency returns the dependency of the jobs of a row: the one that they name, or else the one that their kind
// declares. A job without its own has NULL, a lane has an empty text.
func dependency(table string) string {
	return fmt.Sprintf("coalesce(nullif(%[1]s.dependency, ''), (SELECT k.dependency FROM holdfast_kind k WHERE k.kind = %[1]s.kind))", table)
}

// failureConditions returns the conditions on the last failure of the present generation: on the row itself if the job
// failed, else on its latest attempt that has a code.
func (p *picker) failureConditions(at place) []string {
	table := "a"
	if at.ended {
		table = "p"
	}
	var where []string
	if p.filter.Code != "" {
		where = append(where, table+".code = "+p.bind(p.filter.Code))
	}
	if p.filter.Fingerprint != "" {
		where = append(where, table+".fingerprint = "+p.bind(p.filter.Fingerprint))
	}
	if len(where) == 0 || at.ended {
		return where
	}
	latest := "EXISTS (SELECT 1 FROM holdfast_attempt a WHERE a.job = p.job AND a.generation = p.generation AND a.code IS NOT NULL AND " + strings.Join(where, " AND ") +
		" AND NOT EXISTS (SELECT 1 FROM holdfast_attempt b WHERE b.job = a.job AND b.generation = a.generation AND b.code IS NOT NULL AND b.token > a.token))"
	if at == ready || at == later {
		// A queued job that was never charged has no attempt to look up.
		return []string{"p.failures + p.crashes + p.releases > 0", latest}
	}
	return []string{latest}
}

// bind adds an argument and returns its parameter for the text.
func (p *picker) bind(value any) string {
	p.args = append(p.args, value)
	return fmt.Sprintf("$%d", len(p.args))
}
