package inspect

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A source is rows in the order of ids, by an index. A list that may read only a limited number of rows (Filter.MaxScan)
// goes through sources. A source is one index range, or several segments that have to be merged.
type source struct {
	table    string                      // with its alias: p is the place, j the facts, d the jobs of a redrive
	id       string                      // the column with the job's id
	where    func(p *picker) []string    // the conditions of the index range; nil: the whole table
	covers   []string                    // the parts of the filter that where sees to
	segments string                      // JSON: a list of lists, the key of each segment
	on       func(dialect string) string // the condition that a row belongs to a segment
	small    bool                        // it has fewer rows than may be read, and may be sorted
}

// maxSegments is how many segments are merged at most.
const maxSegments = 256

// A scan is a place, and the source by which to go through it.
type scan struct {
	at     place
	source source
	floor  holdfast.ID // the lowest id that may be read; zero: all may be
}

// leasedScan goes through the leased jobs: there are never many.
var leasedScan = scan{at: leased, source: source{table: "holdfast_leased p", id: "p.job", small: true}}

// anyPlace stands for all jobs, wherever they are.
var anyPlace = place{}

// boundedQuery builds the query for one page that reads about as many rows as the filter allows. All of its branches
// stop at the same id, the picker's floor, so that the next page can continue there and nothing is left out.
func (i *Inspector) boundedQuery(ctx context.Context, p *picker) (query, error) {
	places := p.boundedPlaces()
	if len(places) == 0 {
		return query{}, nil
	}
	trails := make([]scan, len(places))
	for n, at := range places {
		t, err := i.chooseScan(ctx, p, at, max(1, p.filter.MaxScan/len(places)))
		if err != nil {
			return query{}, err
		}
		if bytes.Compare(t.floor[:], p.floor[:]) > 0 {
			p.floor = t.floor
		}
		trails[n] = t
	}
	branches := make([]string, len(trails))
	for n, t := range trails {
		branches[n] = p.scanBranch(t)
	}
	return p.merged(branches), nil
}

// boundedPlaces returns the places to go through; none: nothing can match.
func (p *picker) boundedPlaces() []place {
	places := p.places()
	if places == nil && !p.impossible() {
		return []place{anyPlace}
	}
	return places
}

// chooseScan chooses the source that reaches furthest down within this many rows.
func (i *Inspector) chooseScan(ctx context.Context, p *picker, at place, look int) (best scan, err error) {
	if at == leased {
		return leasedScan, nil
	}
	sources, err := i.sources(ctx, p, at, look)
	for n, by := range sources {
		t := scan{at: at, source: by}
		if t.floor, err = i.floor(ctx, p, t, look); err != nil {
			return best, err
		}
		if n == 0 || bytes.Compare(t.floor[:], best.floor[:]) < 0 {
			best = t
		}
		if best.floor.IsZero() {
			break
		}
	}
	return best, err
}

// floor returns the id of the last row that may be read, or zero if all may be.
func (i *Inspector) floor(ctx context.Context, p *picker, t scan, look int) (floor holdfast.ID, err error) {
	q := &picker{dialect: p.dialect, filter: p.filter, after: p.after, now: p.now}
	var text string
	switch narrowed := q.skipsRows(t); {
	case t.source.small, t.source.on == nil && !narrowed:
		return floor, nil // or the limit of the page bounds it
	case t.source.on == nil:
		text = q.scanText(t.source, nil) + " LIMIT 1 OFFSET " + q.bind(look-1)
	default:
		share := max(1, look/(1+strings.Count(t.source.segments, "],")))
		if !narrowed {
			share = max(share, min(p.limit, largestPage+1)) // so that one segment can fill the page
		}
		strands := q.bind(t.source.segments)
		run := q.scanText(t.source, []string{t.source.on(q.dialect)})
		text = "SELECT (" + run + " LIMIT 1 OFFSET " + q.bind(share-1) + ") FROM " + list(q.dialect, strands) + " AS v"
	}
	err = i.q.Query(ctx, text, q.args, func(r Row) error {
		if id := r.ID(0); bytes.Compare(id[:], floor[:]) > 0 {
			floor = id
		}
		return nil
	})
	return floor, err
}

// scanText returns the text that goes down a source.
func (p *picker) scanText(by source, where []string) string {
	if by.where != nil {
		where = append(where, by.where(p)...)
	}
	if !p.after.IsZero() {
		where = append(where, by.id+" < "+p.bind(p.after))
	}
	text := "SELECT " + by.id + " FROM " + by.table
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	return text + " ORDER BY " + by.id + " DESC"
}

// list returns rows of a JSON list of lists: v.value is one of them.
func list(dialect, argument string) string {
	if dialect == Postgres {
		return "(SELECT w.value FROM json_array_elements(CAST(CAST(" + argument + " AS text) AS json)) AS w)"
	}
	return "(SELECT w.value FROM json_each(" + argument + ") AS w)"
}

// scanBranch builds the branch that goes through a place by a source. Every step is by key, in the order in which it is
// written, so that no planner can read more than the source gives.
func (p *picker) scanBranch(t scan) string {
	by, at := t.source, t.at
	facts := slices.Concat(p.nameConditions("j"), p.factConditions(), p.groupCondition())
	table, where := by.table, []string(nil)
	switch {
	case by.on == nil && by.where != nil:
		where = by.where(p)
	case by.on != nil:
		table = p.segmentRows(by)
	}
	if !strings.HasSuffix(by.table, " j") && (len(facts) > 0 || at.lanes && !strings.HasSuffix(by.table, " p")) {
		table += p.joinRow("holdfast_job", "j", "j.id = "+by.id)
	}
	switch {
	case at == anyPlace || strings.HasSuffix(by.table, " p"):
	case at.lanes:
		table += p.joinRow(at.table, "p", p.eitherLine("p.lane", "j.lane")+" AND p.priority = j.priority AND p.job = j.id")
	default:
		table += p.joinRow(at.table, "p", "p.job = "+by.id)
	}
	if at.where != "" {
		where = append(where, at.where)
	}
	if at == leased && !p.filter.Redrive.IsZero() { // leased jobs cannot be reached by key
		where = append(where, "EXISTS (SELECT 1 FROM "+p.chosenJobs()+" WHERE v.job = p.job)")
	}
	where = append(where, facts...)
	if at != anyPlace {
		where = slices.Concat(where, p.stateConditions(), p.failureConditions(at))
	}
	return p.branch(table, by.id, where)
}

// segmentRows returns the newest rows of each segment, none of them below the floor.
func (p *picker) segmentRows(by source) string {
	within := []string{by.on(p.dialect)}
	if by.where != nil {
		within = append(within, by.where(p)...)
	}
	from := list(p.dialect, p.bind(by.segments)) + " AS v CROSS JOIN "
	if p.dialect == SQLite {
		return from + by.table + " ON " + strings.Join(within, " AND ")
	}
	if !p.after.IsZero() {
		within = append(within, by.id+" < "+p.bind(p.after))
	}
	if !p.floor.IsZero() {
		within = append(within, by.id+" >= "+p.bind(p.floor))
	}
	// The limit exceeds the number of rows. It makes the planner read one segment after the other.
	return from + "LATERAL (SELECT p.* FROM " + by.table + " WHERE " + strings.Join(within, " AND ") + " ORDER BY " + by.id + " DESC LIMIT " +
		p.bind(max(p.limit, p.filter.MaxScan)) + ") AS p"
}

// joinRow joins the one row of another table that belongs to a row.
func (p *picker) joinRow(table, as, on string) string {
	if p.dialect == Postgres {
		return " CROSS JOIN LATERAL (SELECT " + as + ".* FROM " + table + " " + as + " WHERE " + on + " LIMIT 1) AS " + as
	}
	return " CROSS JOIN " + table + " " + as + " ON " + on
}

// skipsRows reports whether the filter may skip rows of a scan. Then the limit of the page does not bound how many rows
// are read.
func (p *picker) skipsRows(t scan) bool {
	f, at := p.filter, t.at
	for name, asked := range map[string]bool{
		"kind": f.Kind != "", "queue": f.Queue != "", "owner": f.Owner != "", "dependency": f.Dependency != "", "tag": f.Tag != "", "code": f.Code != "",
		"fingerprint": f.Fingerprint != "", "generation": f.Generation > 0, "redrive": !f.Redrive.IsZero(), "group": !f.Group.IsZero(), "retrying": f.Retrying,
		"age": f.OlderThan > 0 || f.NewerThan > 0, "state": at.where != "", "place": at != anyPlace && !strings.HasSuffix(t.source.table, " p"),
	} {
		if asked && !slices.Contains(t.source.covers, name) {
			return true
		}
	}
	return false
}

// sources returns the ways to go through a place. The first that reaches the end is used, or else the one that reaches
// furthest.
func (i *Inspector) sources(ctx context.Context, p *picker, at place, look int) ([]source, error) {
	f := p.filter
	switch {
	case !f.Redrive.IsZero():
		return []source{{table: "holdfast_redriven d", id: "d.job", covers: []string{"redrive"}, where: func(p *picker) []string {
			return []string{"d.redrive = " + p.bind(p.filter.Redrive)}
		}}}, nil
	case !f.Group.IsZero():
		return []source{{table: "holdfast_job j", id: "j.id", covers: []string{"group"}, where: (*picker).groupCondition}}, nil
	case at == ready:
		return i.readySources(ctx, p, look)
	}
	var all []source
	if f.Owner != "" {
		all = append(all, owned)
	}
	switch {
	case at == anyPlace && f.Owner == "":
		all = append(all, facts)
	case at == later:
		all = append(all, source{table: "holdfast_later p", id: "p.job"})
	case at.ended:
		own, err := i.failedSource(ctx, f)
		return append(all, own), err
	case at != anyPlace:
		all = append(all, finished)
	}
	return all, nil
}

var (
	facts    = source{table: "holdfast_job j", id: "j.id"}
	finished = source{table: "holdfast_finished p", id: "p.job"}
	owned    = source{table: "holdfast_job j", id: "j.id", covers: []string{"owner"}, where: func(p *picker) []string {
		return []string{"j.owner = " + p.bind(p.filter.Owner)}
	}}
)

// failedSource returns the way through failed jobs: by fingerprint, by code, through the dead letters, or through all
// codes side by side.
func (i *Inspector) failedSource(ctx context.Context, f store.Filter) (source, error) {
	s := finished
	if !f.DeadLetters {
		s.covers = []string{"state"}
	}
	switch {
	case f.Fingerprint != "":
		s.covers = append(s.covers, "fingerprint")
		s.where = func(p *picker) []string {
			return []string{"p.state = 'failed'", "p.fingerprint = " + p.bind(p.filter.Fingerprint)}
		}
	case f.Code != "":
		s.covers = append(s.covers, "code")
		s.where = func(p *picker) []string { return []string{"p.state = 'failed'", "p.code = " + p.bind(p.filter.Code)} }
	case f.DeadLetters:
		s.covers = []string{"state"}
		s.where = func(*picker) []string { return []string{"p.state = 'failed'", "p.discarded_at IS NULL"} }
	default:
		strands, many, err := i.segmentKeys(ctx, "inspect_failed_codes", []any{maxSegments + 1}, func(r Row) any { return []string{r.Text(0)} })
		if err != nil || many {
			return finished, err
		}
		s.segments = strands
		s.where = func(*picker) []string { return []string{"p.state = 'failed'"} }
		s.on = func(string) string { return "p.code = v.value ->> 0" }
	}
	return s, nil
}
