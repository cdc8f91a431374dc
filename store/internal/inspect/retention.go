package inspect

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const (
	usualArtifacts   = 200
	largestArtifacts = 1000
)

// Tombstones lists what remains of purged jobs, the last purged first. The cursor leads to the next page and is empty
// on the last.
func (i *Inspector) Tombstones(ctx context.Context, f store.TombstoneFilter) ([]store.Tombstone, string, error) {
	limit, err := pageSize(f.Limit, "tombstones")
	if err == nil {
		err = isText(f.Kind)
	}
	if err != nil {
		return nil, "", err
	}
	p := &picker{}
	where := []string{"true"}
	if !f.Job.IsZero() {
		where = append(where, "s.job = "+p.bind(f.Job))
	}
	if f.Kind != "" {
		where = append(where, "s.kind = "+p.bind(f.Kind))
	}
	if f.Cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(f.Cursor)
		if err != nil || len(raw) != 8+len(holdfast.ID{}) {
			return nil, "", invalid("the cursor %.40q is not valid: start again without it", f.Cursor)
		}
		at := time.UnixMicro(int64(binary.BigEndian.Uint64(raw))).UTC()
		where = append(where, "(s.purged_at, s.job) < ("+p.bind(at)+", "+p.bind(holdfast.ID(raw[8:]))+")")
	}
	var tombstones []store.Tombstone
	text := "SELECT s.job, s.kind, s.queue, s.owner, s.group_id, s.group_state, s.state, s.code, s.finished_at, s.purged_at, s.rule FROM holdfast_tombstone s WHERE " +
		strings.Join(where, " AND ") + " ORDER BY s.purged_at DESC, s.job DESC LIMIT " + p.bind(limit+1)
	err = i.q.Query(ctx, text, p.args, func(r Row) error {
		tombstones = append(tombstones, store.Tombstone{
			Job: r.ID(0), Kind: r.Text(1), Queue: r.Text(2), Owner: r.Text(3), Group: r.ID(4), GroupState: holdfast.GroupState(r.Text(5)),
			State: holdfast.State(r.Text(6)), Code: r.Text(7), FinishedAt: r.Time(8), PurgedAt: r.Time(9), Rule: r.Text(10),
		})
		return nil
	})
	if err != nil || len(tombstones) <= limit {
		return tombstones, "", err
	}
	tombstones = tombstones[:limit]
	last := tombstones[limit-1]
	raw := binary.BigEndian.AppendUint64(nil, uint64(last.PurgedAt.UnixMicro()))
	return tombstones, base64.RawURLEncoding.EncodeToString(append(raw, last.Job[:]...)), nil
}

// PurgeCounts returns how many jobs were ever purged, by rule, kind, state and code.
func (i *Inspector) PurgeCounts(ctx context.Context) ([]store.PurgeCount, error) {
	var counts []store.PurgeCount
	err := i.whole(ctx, i.statements["inspect_purge_counts"], nil, func(r Row) error {
		counts = append(counts, store.PurgeCount{Rule: r.Text(0), Kind: r.Text(1), State: holdfast.State(r.Text(2)), Code: r.Text(3), Jobs: r.Int(4), Last: r.Time(5)})
		return nil
	})
	slices.SortFunc(counts, func(a, b store.PurgeCount) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Kind, b.Kind), cmp.Compare(a.State, b.State), strings.Compare(a.Code, b.Code))
	})
	return counts, err
}

// Artifacts returns the artifacts of a job, by name, or all artifacts whose time is over, the longest overdue first.
func (i *Inspector) Artifacts(ctx context.Context, f store.ArtifactFilter) ([]store.Artifact, error) {
	if f.Job.IsZero() != f.Due {
		return nil, invalid("artifacts of a job, or artifacts that are due: ask for exactly one of them")
	}
	if f.Limit < 0 {
		return nil, invalid("limit %d: ask for 1 to %d artifacts, or 0 for %d", f.Limit, largestArtifacts, usualArtifacts)
	}
	limit := usualArtifacts
	if f.Limit > 0 {
		limit = min(f.Limit, largestArtifacts)
	}
	name, of := "inspect_artifacts", any(f.Job)
	if f.Due {
		now, err := i.now(ctx)
		if err != nil {
			return nil, err
		}
		name, of = "inspect_due_artifacts", now
	}
	var artifacts []store.Artifact
	err := i.q.Query(ctx, i.statements[name], []any{of, limit}, func(r Row) error {
		artifacts = append(artifacts, store.Artifact{Job: r.ID(0), Name: r.Text(1), Ref: r.Text(2), Size: int64(r.Int(3)), CreatedAt: r.Time(4), ExpireAt: r.Time(5), ExpiredAt: r.Time(6)})
		return nil
	})
	if !f.Due { // sorted here and not in the statement: databases disagree on the order of texts
		slices.SortFunc(artifacts, func(a, b store.Artifact) int { return strings.Compare(a.Name, b.Name) })
	}
	return artifacts, err
}

// notFoundOrPurged returns the error for an id that has no job: it never existed, or retention has purged it.
func (i *Inspector) notFoundOrPurged(ctx context.Context, id holdfast.ID) error {
	answer := notFound(id)
	err := i.q.Query(ctx, i.statements["inspect_tombstone"], []any{id}, func(r Row) error {
		answer = &holdfast.Error{Err: holdfast.ErrPurged, Job: id, Message: fmt.Sprintf("job %s was purged on %s by the rule %q: only its tombstone is left",
			id, r.Time(0).Format("2006-01-02 15:04:05 UTC"), r.Text(1))}
		return nil
	})
	if err != nil {
		return err
	}
	return answer
}
