package inspect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Group returns a group with the counts of its members. For a settled group these are the counts of its settlement,
// which outlive members that were purged since.
func (i *Inspector) Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error) {
	groups, err := i.groups(ctx, "g.id = $1", []any{id})
	if err != nil {
		return holdfast.Group{}, err
	}
	if len(groups) == 0 {
		return holdfast.Group{}, rule.NoGroup(id)
	}
	if !groups[0].State.Settled() {
		groups[0].Members, err = i.members(ctx, id)
	}
	return groups[0], err
}

// Groups lists the matching groups, newest first, without counting members: only settled groups have counts. The cursor
// leads to the next page and is empty on the last.
func (i *Inspector) Groups(ctx context.Context, f store.GroupFilter) ([]holdfast.Group, string, error) {
	switch f.State {
	case "", holdfast.GroupOpen, holdfast.GroupProcessing, holdfast.GroupReady, holdfast.GroupPartial, holdfast.GroupFailed, holdfast.GroupCancelled, holdfast.GroupExpired:
	default:
		return nil, "", invalid("state %.40q: use open, processing, ready, partial, failed, cancelled or expired", f.State)
	}
	limit, err := pageSize(f.Limit, "groups")
	if err != nil {
		return nil, "", err
	}
	p := &picker{}
	where := []string{"true"}
	for _, named := range []struct{ column, text string }{{"g.state", string(f.State)}, {"g.owner", f.Owner}, {"g.name", f.Name}} {
		if err := isText(named.text); err != nil {
			return nil, "", err
		}
		if named.text != "" {
			where = append(where, named.column+" = "+p.bind(named.text))
		}
	}
	if !f.Parent.IsZero() {
		where = append(where, "g.parent = "+p.bind(f.Parent))
	}
	if f.Cursor != "" {
		after, err := cursorID(f.Cursor)
		if err != nil {
			return nil, "", err
		}
		where = append(where, "g.id < "+p.bind(after))
	}
	// One group more than the page shows whether there is another page.
	groups, err := i.groups(ctx, strings.Join(where, " AND ")+" ORDER BY g.id DESC LIMIT "+p.bind(limit+1), p.args)
	if err != nil || len(groups) <= limit {
		return groups, "", err
	}
	groups = groups[:limit]
	return groups, idCursor(groups[limit-1].ID), nil
}

// idCursor returns the cursor of a page that ends with an id.
func idCursor(last holdfast.ID) string { return base64.RawURLEncoding.EncodeToString(last[:]) }

// groups reads the groups that match a condition, without counting their members.
func (i *Inspector) groups(ctx context.Context, where string, args []any) ([]holdfast.Group, error) {
	now, err := i.now(ctx)
	if err != nil {
		return nil, err
	}
	var groups []holdfast.Group
	text := "SELECT g.id, g.name, g.owner, g.parent, g.quorum, g.expire_at, CAST(g.then_jobs AS text), g.created_at, g.sealed_at, g.generation, g.state, g.settled_at, " +
		"g.complete, g.failed, g.cancelled, g.skipped FROM holdfast_group g WHERE " + where
	err = i.q.Query(ctx, text, args, func(r Row) error {
		groups = append(groups, readGroupRow(r, now))
		return nil
	})
	return groups, err
}

func readGroupRow(r Row, now time.Time) holdfast.Group {
	g := holdfast.Group{
		ID: r.ID(0), Name: r.Text(1), Owner: r.Text(2), Parent: r.ID(3), Quorum: r.Int(4), ExpireAt: r.Time(5), CreatedAt: r.Time(7), SealedAt: r.Time(8),
		Generation: r.Int(9), State: holdfast.GroupState(r.Text(10)), SettledAt: r.Time(11), AsOf: now,
	}
	if then := r.Text(6); then != "" {
		_ = json.Unmarshal([]byte(then), &g.Then) // damaged continuations are left out: the group is still shown
	}
	if g.State.Settled() {
		g.Members = holdfast.Members{Complete: r.Int(12), Failed: r.Int(13), Cancelled: r.Int(14), Skipped: r.Int(15)}
		g.Members.Total = g.Members.Complete + g.Members.Failed + g.Members.Cancelled + g.Members.Skipped
	}
	return g
}

// members counts the members of a group by state.
func (i *Inspector) members(ctx context.Context, id holdfast.ID) (m holdfast.Members, err error) {
	leased := 0
	err = i.q.Query(ctx, i.statements["inspect_group_members"], []any{id}, func(r Row) error {
		count := map[string]*int{
			"waiting": &m.Waiting, "queued": &m.Queued, "processing": &m.Processing, "leased": &leased,
			"complete": &m.Complete, "failed": &m.Failed, "cancelled": &m.Cancelled, "skipped": &m.Skipped,
		}[r.Text(0)]
		if count != nil {
			*count += r.Int(1)
		}
		return nil
	})
	leased = min(leased, m.Queued) // a leased member is in no other place, and was counted as queued
	m.Queued, m.Processing = m.Queued-leased, m.Processing+leased
	m.Total = m.Live() + m.Complete + m.Failed + m.Cancelled + m.Skipped
	return m, err
}

// pageSize returns the number of entries on a page for the limit that the caller asks for.
func pageSize(limit int, what string) (int, error) {
	if limit < 0 {
		return 0, invalid("limit %d: ask for 1 to %d %s, or 0 for %d", limit, largestPage, what, usualPage)
	}
	if limit == 0 {
		limit = usualPage
	}
	return min(limit, largestPage), nil
}

// cursorID returns the id that a cursor contains.
func cursorID(cursor string) (id holdfast.ID, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) != len(id) || holdfast.ID(raw).IsZero() {
		return id, invalid("the cursor %.40q is not valid: start again without it", cursor)
	}
	return holdfast.ID(raw), nil
}

func isText(text string) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return invalid("the filter %.40q is not valid text: use UTF-8 without NUL", text)
	}
	return nil
}
