package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A claimReader queues the queries for all that a claim plan depends on. Each answer is read when the caller sends the batch. It changes nothing and
// locks nothing.
type claimReader struct {
	db *database
}

// queueHolds queues the query for the holds in force, in the order of their keys, with their hash and the time of the database.
func (r claimReader) queueHolds(b *pgx.Batch, into *claimView) {
	b.Queue(r.db.sql["hold_read"]).Query(func(rows pgx.Rows) error {
		into.holds = nil
		var scope, name, source pgtype.Text
		var retries pgtype.Bool
		var most pgtype.Int4
		var perSecond, burst, level pgtype.Float8
		_, err := pgx.ForEachRow(rows, []any{&into.now, &into.hash, &scope, &name, &source, &retries, &most, &perSecond, &burst, &level}, func() error {
			if !scope.Valid {
				return nil
			}
			h := store.Hold{}.WithScope(scope.String, name.String)
			h.Source, h.Retries, h.AtMost = source.String, retries.Bool, int(most.Int32)
			if perSecond.Valid {
				h.Rate = &store.Rate{PerSecond: perSecond.Float64, Burst: burst.Float64, Level: level.Float64}
			}
			into.holds = append(into.holds, h)
			return nil
		})
		slices.SortFunc(into.holds, compareHolds)
		return err
	})
}

// queueKinds queues the query for the declared dependencies of kinds.
func (r claimReader) queueKinds(b *pgx.Batch, into map[string]string) {
	var kind, dependency string
	queueRows(b, r.db.sql["kind_read"], nil, []any{&kind, &dependency}, func() error { into[kind] = dependency; return nil })
}

// queueWeights queues the query for the weights of owners.
func (r claimReader) queueWeights(b *pgx.Batch, into map[string]float64) {
	var owner, body string
	queueRows(b, r.db.sql["read_weights"], nil, []any{&owner, &body}, func() error { lane.AddWeight(into, owner, body); return nil })
}

// queueLines queues the query for all places with ready jobs in a scope, and perhaps some of other scopes, with the first job of each.
func (r claimReader) queueLines(b *pgx.Batch, scope *lane.Scope, each func(at place, first holdfast.ID)) {
	var at place
	var first [16]byte
	args := []any{cleanText(textArray(scope.Queues)), cleanText(textArray(scope.Kinds))}
	queueRows(b, r.db.sql["find_lines"], args, []any{&at.lane, &at.priority, &first}, func() error { each(at, first); return nil })
}

// queueLanes queues the query for the rows of lanes.
func (r claimReader) queueLanes(b *pgx.Batch, lanes []int32, each func(id int32, p path)) {
	var id int32
	var p path
	queueRows(b, r.db.sql["lane_read"], []any{lanes}, []any{&id, &p.queue, &p.kind, &p.owner, &p.dependency}, func() error { each(id, p); return nil })
}

// queueLive queues the query for the number of processing jobs in each line. kinds are the declared dependencies of kinds, which an earlier query of
// the same batch may still have to read.
func (r claimReader) queueLive(b *pgx.Batch, kinds map[string]string, into *[]liveCount) {
	var l lane.Lane
	var own string
	var one liveCount
	queueRows(b, r.db.sql["count_live"], nil, []any{&l.ID, &one.retries, &one.jobs, &l.Queue, &l.Kind, &l.Owner, &own}, func() error {
		of := l
		of.Dependency = lane.Dependency(own, l.Kind, kinds)
		*into = append(*into, liveCount{&of, one.retries, one.jobs})
		return nil
	})
}

// A keyQuery asks for the first keys of heads, up to depth of each, with the first of these tags that each job has.
type keyQuery struct {
	heads []lane.Head
	depth int
	tags  []string
}

// queueKeys queues a key query. It calls each for every key, with the index of its head, and done at the end.
func (r claimReader) queueKeys(b *pgx.Batch, q keyQuery, each func(head int, key lane.Key, tag pgtype.Text), done func()) {
	var line, low, high column
	for i := range q.heads {
		from, to := q.heads[i].Priorities()
		line.int(int(q.heads[i].Line))
		low.int(int(from))
		high.int(int(to))
	}
	args := append(arrayArgs([]column{line, low, high}), q.depth, textArray(q.tags))
	b.Queue(r.db.sql["peek"], args...).Query(func(rows pgx.Rows) error {
		var n int
		var priority int16
		var job [16]byte
		var tag pgtype.Text
		_, err := pgx.ForEachRow(rows, []any{&n, &priority, &job, &tag}, func() error {
			each(n-1, lane.Key{Priority: priority, Job: job}, tag)
			return nil
		})
		done()
		return err
	})
}
