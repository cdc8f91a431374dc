package inspect

import (
	"context"
	"encoding/json"
	"strings"
)

// waiting is the way through ready, whose key begins with lane and priority. Strands of one lane and priority are merged. If there are too
// many of them, all of ready is put in order if it is little; or else all jobs are gone through, and each is asked whether it is ready.
func (i *Inspector) waiting(ctx context.Context, p *picker, look int) ([]source, error) {
	name, args, covers, err := i.strandsOf(ctx, p)
	if err != nil {
		return nil, err
	}
	strands, many, err := i.keys(ctx, name, args, func(r Row) any {
		if p.filter.Retrying && r.Int(0) > 0 {
			return nil // first attempts
		}
		return []int{r.Int(0), r.Int(1)}
	})
	if err != nil {
		return nil, err
	}
	if !many {
		return []source{{table: "holdfast_ready p", id: "p.job", covers: append(covers, "retrying"), strands: strands, on: onStrand}}, nil
	}
	n, err := i.count(ctx, query{"SELECT 1 FROM holdfast_ready r LIMIT $1", []any{look + 1}})
	switch {
	case err != nil:
		return nil, err
	case n <= look:
		return []source{{table: "holdfast_ready p", id: "p.job", little: true}}, nil
	case p.filter.Owner != "":
		return []source{owned}, nil
	}
	return []source{facts}, nil
}

// onStrand is the condition that a row of ready is of a strand.
func onStrand(dialect string) string {
	if dialect == Postgres {
		return "p.lane = CAST(v.value ->> 0 AS integer) AND p.priority = CAST(v.value ->> 1 AS smallint)"
	}
	return "p.lane = v.value ->> 0 AND p.priority = v.value ->> 1"
}

// strandsOf is the statement that finds the strands in which the filter's jobs can be: those of the lanes it means, when these are not too many,
// which covers its names, or else all.
func (i *Inspector) strandsOf(ctx context.Context, p *picker) (name string, args []any, covers []string, err error) {
	q := &picker{dialect: p.dialect, filter: p.filter}
	names := q.names("n")
	if len(names) == 0 {
		return "inspect_segments", []any{mostStrands + 1}, nil, nil
	}
	lines, met := []int{}, 0
	err = i.q.Query(ctx, "SELECT n.id FROM holdfast_lane n WHERE "+strings.Join(names, " AND ")+" LIMIT "+q.bind(mostStrands+1), q.args, func(r Row) error {
		met++
		lines = append(lines, r.Int(0), -r.Int(0))
		return nil
	})
	if err != nil || met > mostStrands {
		return "inspect_segments", []any{mostStrands + 1}, nil, err
	}
	text, err := json.Marshal(lines)
	return "inspect_segments_of_lines", []any{mostStrands + 1, string(text)}, []string{"kind", "queue", "owner", "dependency"}, err
}

// keys are those of the strands that a statement finds, as JSON, but for the ones that are nil; or that there are too many of them.
func (i *Inspector) keys(ctx context.Context, name string, args []any, read func(Row) any) (strands string, many bool, err error) {
	keys, met := []any{}, 0
	err = i.q.Query(ctx, i.statements[name], args, func(r Row) error {
		met++
		if key := read(r); key != nil {
			keys = append(keys, key)
		}
		return nil
	})
	if err != nil || met > mostStrands {
		return "", met > mostStrands, err
	}
	text, err := json.Marshal(keys)
	return string(text), false, err
}
