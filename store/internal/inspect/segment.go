package inspect

import (
	"context"
	"encoding/json"
	"strings"
)

// readySources returns the ways through ready, whose key begins with lane and priority. The rows of one line and
// priority are a segment: within it they are in the order of ids, and segments are merged. If there are too many
// segments, all of ready is sorted if it is small; or else all jobs are gone through, and each is looked up in ready.
func (i *Inspector) readySources(ctx context.Context, p *picker, look int) ([]source, error) {
	name, args, covers, err := i.segmentStatement(ctx, p)
	if err != nil {
		return nil, err
	}
	strands, many, err := i.segmentKeys(ctx, name, args, func(r Row) any {
		if p.filter.Retrying && r.Int(0) > 0 {
			return nil // the filter asks for retries only
		}
		return []int{r.Int(0), r.Int(1)}
	})
	if err != nil {
		return nil, err
	}
	if !many {
		return []source{{table: "holdfast_ready p", id: "p.job", covers: append(covers, "retrying"), segments: strands, on: onSegment}}, nil
	}
	n, err := i.count(ctx, query{"SELECT 1 FROM holdfast_ready r LIMIT $1", []any{look + 1}})
	switch {
	case err != nil:
		return nil, err
	case n <= look:
		return []source{{table: "holdfast_ready p", id: "p.job", small: true}}, nil
	case p.filter.Owner != "":
		return []source{owned}, nil
	}
	return []source{facts}, nil
}

// onSegment returns the condition that a row of ready belongs to a segment.
func onSegment(dialect string) string {
	if dialect == Postgres {
		return "p.lane = CAST(v.value ->> 0 AS integer) AND p.priority = CAST(v.value ->> 1 AS smallint)"
	}
	return "p.lane = v.value ->> 0 AND p.priority = v.value ->> 1"
}

// segmentStatement returns the statement that finds the segments in which the filter's jobs can be: those of the lanes
// that it names, if there are not too many, or else all. covers are the parts of the filter that these lanes see to.
func (i *Inspector) segmentStatement(ctx context.Context, p *picker) (name string, args []any, covers []string, err error) {
	q := &picker{dialect: p.dialect, filter: p.filter}
	names := q.nameConditions("n")
	if len(names) == 0 {
		return "inspect_segments", []any{maxSegments + 1}, nil, nil
	}
	lines, found := []int{}, 0
	err = i.q.Query(ctx, "SELECT n.id FROM holdfast_lane n WHERE "+strings.Join(names, " AND ")+" LIMIT "+q.bind(maxSegments+1), q.args, func(r Row) error {
		found++
		lines = append(lines, r.Int(0), -r.Int(0))
		return nil
	})
	if err != nil || found > maxSegments {
		return "inspect_segments", []any{maxSegments + 1}, nil, err
	}
	text, err := json.Marshal(lines)
	return "inspect_segments_of_lines", []any{maxSegments + 1, string(text)}, []string{"kind", "queue", "owner", "dependency"}, err
}

// segmentKeys returns the keys of the segments that a statement finds, as JSON, without those for which read returns
// nil. many is true if there are too many.
func (i *Inspector) segmentKeys(ctx context.Context, name string, args []any, read func(Row) any) (strands string, many bool, err error) {
	keys, found := []any{}, 0
	err = i.q.Query(ctx, i.statements[name], args, func(r Row) error {
		found++
		if key := read(r); key != nil {
			keys = append(keys, key)
		}
		return nil
	})
	if err != nil || found > maxSegments {
		return "", found > maxSegments, err
	}
	text, err := json.Marshal(keys)
	return string(text), false, err
}
