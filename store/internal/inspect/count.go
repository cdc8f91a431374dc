package inspect

import (
	"context"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// mostCountedLanes is how many lanes of a filter are counted if the filter bounds how many rows are read.
const mostCountedLanes = 5_000

// Count counts the jobs that match a filter, up to most: there are that many, or more. If the filter bounds how many
// rows are read, Count returns how many were found until then. The limit and the cursor of the filter have no meaning
// here.
func (i *Inspector) Count(ctx context.Context, f store.Filter, most int) (int, error) {
	f.Limit, f.Cursor = 0, ""
	if _, err := checkFilter(&f); err != nil {
		return 0, err
	}
	if most <= 0 {
		return 0, invalid("a count up to %d: give a positive number", most)
	}
	now, err := i.now(ctx)
	if err != nil {
		return 0, err
	}
	p := &picker{dialect: i.dialect, filter: f, now: now, limit: most, any: true}
	pick, err := i.countQuery(ctx, p)
	if err != nil || pick.text == "" {
		return 0, err
	}
	return i.count(ctx, pick)
}

// countQuery selects what is counted, up to the picker's limit. Unlike the branches of a list, its branches need not
// stop at the same job.
func (i *Inspector) countQuery(ctx context.Context, p *picker) (query, error) {
	if p.filter.MaxScan == 0 {
		return p.pick(), nil
	}
	places := p.boundedPlaces()
	if len(places) == 0 {
		return query{}, nil
	}
	branches := make([]string, len(places))
	look := max(1, p.filter.MaxScan/len(places))
	for n, at := range places {
		if at == ready && p.filter.Redrive.IsZero() && p.filter.Group.IsZero() {
			branches[n] = p.readyBranch(look)
			continue
		}
		t, err := i.chooseScan(ctx, p, at, look)
		if err != nil {
			return query{}, err
		}
		p.floor = t.floor
		branches[n] = p.scanBranch(t)
	}
	p.floor = holdfast.ID{}
	return p.merged(branches), nil
}

// readyBranch is the branch of ready in no order: the first rows of the lanes that the filter names.
func (p *picker) readyBranch(look int) string {
	table := "(SELECT p.* FROM " + p.readyRows(look) + " LIMIT " + p.bind(look) + ") AS p"
	facts := p.factConditions()
	if len(facts) > 0 {
		table += p.joinRow("holdfast_job", "j", "j.id = p.job")
	}
	return p.branch(table, "p.job", append(append(facts, p.stateConditions()...), p.failureConditions(ready)...))
}

// readyRows returns the rows of ready in the lanes that the filter names, lane by lane; only retries, if it asks for
// these.
func (p *picker) readyRows(look int) string {
	names := p.nameConditions("n")
	if len(names) == 0 && p.filter.Retrying {
		return "holdfast_ready p WHERE p.lane < 0"
	}
	if len(names) == 0 {
		return "holdfast_ready p"
	}
	lanes := "(SELECT n.id FROM holdfast_lane n WHERE " + strings.Join(names, " AND ") + " LIMIT " + p.bind(mostCountedLanes) + ") AS n"
	lines := "(VALUES (1), (-1))"
	if p.filter.Retrying {
		lines = "(VALUES (-1))"
	}
	if p.dialect == Postgres {
		return lanes + " CROSS JOIN " + lines + " AS s (sign) CROSS JOIN LATERAL (SELECT r.* FROM holdfast_ready r WHERE r.lane = s.sign * n.id ORDER BY r.priority, r.job LIMIT " +
			p.bind(look) + ") AS p"
	}
	return lanes + " CROSS JOIN " + lines + " AS s CROSS JOIN holdfast_ready AS p ON p.lane = s.column1 * n.id"
}

// count counts the rows of a query.
func (i *Inspector) count(ctx context.Context, pick query) (n int, err error) {
	err = i.q.Query(ctx, "SELECT count(*) FROM ("+pick.text+") AS counted", pick.args, func(r Row) error {
		n = r.Int(0)
		return nil
	})
	return n, err
}
