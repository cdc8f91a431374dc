package inspect

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// A source gives rows in the order of ids, by an index: what a list goes through when it may not look at everything. It is a run, or
// several strands that have to be merged.
type source struct {
	table   string                      // with what it is called: p is the place, j the facts, d the choice
	id      string                      // the job of a row
	where   func(p *picker) []string    // what the index leads to; nil: all of the table
	covers  []string                    // what the filter asks for that where sees to
	strands string                      // JSON: a list of lists, the key of each strand
	on      func(dialect string) string // the key of a strand in the table
	little  bool                        // it has fewer rows than may be looked at, and may be put in order
}

// mostStrands is how many strands are merged at most.
const mostStrands = 256

// A trail is a place and the source by which to go through it.
type trail struct {
	at    place
	by    source
	floor holdfast.ID // how far down it was looked; zero: to the end
}

// held is the way through what is leased: there are never many.
var held = trail{at: leased, by: source{table: "holdfast_leased p", id: "p.job", little: true}}

// everywhere is no place: whatever stands anywhere.
var everywhere = place{}

// look builds the query for one page that looks at about as many rows as the filter allows. All of its branches stop at the same id, the
// picker's floor, so that the next page can go on from there and nothing is left out.
func (i *Inspector) look(ctx context.Context, p *picker) (query, error) {
	places := p.looked()
	if len(places) == 0 {
		return query{}, nil
	}
	trails := make([]trail, len(places))
	for n, at := range places {
		t, err := i.trail(ctx, p, at, max(1, p.filter.Look/len(places)))
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
		branches[n] = p.along(t)
	}
	return p.merged(branches), nil
}

// looked are the places that are gone through; none: nothing can match.
func (p *picker) looked() []place {
	places := p.places()
	if places == nil && !p.impossible() {
		return []place{everywhere}
	}
	return places
}

// trail chooses the source that leads furthest down within so many rows.
func (i *Inspector) trail(ctx context.Context, p *picker, at place, look int) (best trail, err error) {
	if at == leased {
		return held, nil
	}
	sources, err := i.sources(ctx, p, at, look)
	for n, by := range sources {
		t := trail{at: at, by: by}
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

// floor is the last row that may be looked at, or zero when all of them may.
func (i *Inspector) floor(ctx context.Context, p *picker, t trail, look int) (floor holdfast.ID, err error) {
	q := &picker{dialect: p.dialect, filter: p.filter, after: p.after, now: p.now}
	var text string
	switch narrowed := q.narrowed(t); {
	case t.by.little, t.by.on == nil && !narrowed:
		return floor, nil // or the limit of the page bounds it
	case t.by.on == nil:
		text = q.run(t.by, nil) + " LIMIT 1 OFFSET " + q.bind(look-1)
	default:
		share := max(1, look/(1+strings.Count(t.by.strands, "],")))
		if !narrowed {
			share = max(share, min(p.limit, largestPage+1)) // so that it fills the page
		}
		strands := q.bind(t.by.strands)
		run := q.run(t.by, []string{t.by.on(q.dialect)})
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

// run goes down a source.
func (p *picker) run(by source, where []string) string {
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

// list makes rows of a JSON list of lists: v.value is one of them.
func list(dialect, argument string) string {
	if dialect == Postgres {
		return "(SELECT w.value FROM json_array_elements(CAST(CAST(" + argument + " AS text) AS json)) AS w)"
	}
	return "(SELECT w.value FROM json_each(" + argument + ") AS w)"
}

// along builds the branch that goes through a place by a source. Every step is by key, in the order in which it is written, so that nobody
// who plans it can come to read more than the source gives.
func (p *picker) along(t trail) string {
	by, at := t.by, t.at
	facts := slices.Concat(p.names("j"), p.facts(), p.member())
	table, where := by.table, []string(nil)
	switch {
	case by.on == nil && by.where != nil:
		where = by.where(p)
	case by.on != nil:
		table = p.strands(by)
	}
	if !strings.HasSuffix(by.table, " j") && (len(facts) > 0 || at.lanes && !strings.HasSuffix(by.table, " p")) {
		table += p.step("holdfast_job", "j", "j.id = "+by.id)
	}
	switch {
	case at == everywhere || strings.HasSuffix(by.table, " p"):
	case at.lanes:
		table += p.step(at.table, "p", p.either("p.lane", "j.lane")+" AND p.priority = j.priority AND p.job = j.id")
	default:
		table += p.step(at.table, "p", "p.job = "+by.id)
	}
	if at.where != "" {
		where = append(where, at.where)
	}
	if at == leased && !p.filter.Redrive.IsZero() { // what is leased has no key by which to come to it
		where = append(where, "EXISTS (SELECT 1 FROM "+p.chosen()+" WHERE v.job = p.job)")
	}
	where = append(where, facts...)
	if at != everywhere {
		where = slices.Concat(where, p.standing(), p.trouble(at))
	}
	return p.branch(table, by.id, where)
}

// strands are the newest rows of each strand, none of them older than the floor.
func (p *picker) strands(by source) string {
	within := []string{by.on(p.dialect)}
	if by.where != nil {
		within = append(within, by.where(p)...)
	}
	from := list(p.dialect, p.bind(by.strands)) + " AS v CROSS JOIN "
	if p.dialect == SQLite {
		return from + by.table + " ON " + strings.Join(within, " AND ")
	}
	if !p.after.IsZero() {
		within = append(within, by.id+" < "+p.bind(p.after))
	}
	if !p.floor.IsZero() {
		within = append(within, by.id+" >= "+p.bind(p.floor))
	}
	// The limit is more than there is: it keeps the planner to one strand after the other.
	return from + "LATERAL (SELECT p.* FROM " + by.table + " WHERE " + strings.Join(within, " AND ") + " ORDER BY " + by.id + " DESC LIMIT " +
		p.bind(max(p.limit, p.filter.Look)) + ") AS p"
}

// step goes on to the one row of another table that belongs to a row.
func (p *picker) step(table, as, on string) string {
	if p.dialect == Postgres {
		return " CROSS JOIN LATERAL (SELECT " + as + ".* FROM " + table + " " + as + " WHERE " + on + " LIMIT 1) AS " + as
	}
	return " CROSS JOIN " + table + " " + as + " ON " + on
}

// narrowed reports whether rows of a trail may be passed over: then a full page is no bound for what is looked at.
func (p *picker) narrowed(t trail) bool {
	f, at := p.filter, t.at
	for name, asked := range map[string]bool{
		"kind": f.Kind != "", "queue": f.Queue != "", "owner": f.Owner != "", "dependency": f.Dependency != "", "tag": f.Tag != "", "code": f.Code != "",
		"fingerprint": f.Fingerprint != "", "generation": f.Generation > 0, "redrive": !f.Redrive.IsZero(), "group": !f.Group.IsZero(), "retrying": f.Retrying,
		"age": f.OlderThan > 0 || f.YoungerThan > 0, "state": at.where != "", "place": at != everywhere && !strings.HasSuffix(t.by.table, " p"),
	} {
		if asked && !slices.Contains(t.by.covers, name) {
			return true
		}
	}
	return false
}

// sources are the ways through a place. The first that leads to its end is taken, or else the one that leads furthest.
func (i *Inspector) sources(ctx context.Context, p *picker, at place, look int) ([]source, error) {
	f := p.filter
	switch {
	case !f.Redrive.IsZero():
		return []source{{table: "holdfast_redriven d", id: "d.job", covers: []string{"redrive"}, where: func(p *picker) []string {
			return []string{"d.redrive = " + p.bind(p.filter.Redrive)}
		}}}, nil
	case !f.Group.IsZero():
		return []source{{table: "holdfast_job j", id: "j.id", covers: []string{"group"}, where: (*picker).member}}, nil
	case at == ready:
		return i.waiting(ctx, p, look)
	}
	var all []source
	if f.Owner != "" {
		all = append(all, owned)
	}
	switch {
	case at == everywhere && f.Owner == "":
		all = append(all, facts)
	case at == later:
		all = append(all, source{table: "holdfast_later p", id: "p.job"})
	case at.ended:
		own, err := i.dead(ctx, f)
		return append(all, own), err
	case at != everywhere:
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

// dead is the way through what failed for good: by fingerprint, by code, through the dead letters, or through all codes side by side.
func (i *Inspector) dead(ctx context.Context, f holdfast.Filter) (source, error) {
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
		strands, many, err := i.keys(ctx, "inspect_failed_codes", []any{mostStrands + 1}, func(r Row) any { return []string{r.Text(0)} })
		if err != nil || many {
			return finished, err
		}
		s.strands = strands
		s.where = func(*picker) []string { return []string{"p.state = 'failed'"} }
		s.on = func(string) string { return "p.code = v.value ->> 0" }
	}
	return s, nil
}
