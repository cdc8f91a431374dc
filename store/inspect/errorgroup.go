package inspect

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

const (
	// step is how finely failures are tallied.
	step = 5 * time.Minute
	day  = 24 * time.Hour
	week = 7 * day
)

// ErrorGroups lists what matches, the last seen first. The cursor leads to the next page and is empty on the last. A group
// whose time or count of being ignored is over is shown as open, whether anything has failed since or not.
func (i *Inspector) ErrorGroups(ctx context.Context, f holdfast.ErrorFilter) ([]holdfast.ErrorGroup, string, error) {
	now, err := i.now(ctx)
	if err != nil {
		return nil, "", err
	}
	p := &grouper{picker: picker{now: now}, filter: f}
	if err := p.check(); err != nil {
		return nil, "", err
	}
	var groups []holdfast.ErrorGroup
	pick := p.pick()
	err = i.q.Query(ctx, pick.text, pick.args, func(r Row) error {
		groups = append(groups, readGroup(r))
		return nil
	})
	if err != nil || len(groups) == 0 {
		return nil, "", err
	}
	cursor := ""
	if limit := p.filter.Limit; len(groups) > limit {
		groups = groups[:limit]
		last := groups[limit-1]
		raw := binary.BigEndian.AppendUint64(nil, uint64(last.LastSeen.UnixMicro()))
		cursor = base64.RawURLEncoding.EncodeToString(append(raw, last.Fingerprint...))
	}
	return groups, cursor, i.tally(ctx, groups, now)
}

// A grouper chooses one page of error groups, as a picker chooses jobs.
type grouper struct {
	picker
	filter      holdfast.ErrorFilter
	seen        time.Time // where the page before ended
	fingerprint string
}

// check refuses a filter that cannot mean anything, and fills in its limit and where its cursor points.
func (p *grouper) check() error {
	f := &p.filter
	switch f.Status {
	case "", holdfast.Open, holdfast.Acknowledged, holdfast.Ignored, holdfast.Resolved, holdfast.Regressed:
	default:
		return invalid("status %.40q: use open, acknowledged, ignored, resolved or regressed", f.Status)
	}
	limit, err := pageSize(f.Limit, "error groups")
	if err != nil {
		return err
	}
	f.Limit = limit
	raw, err := base64.RawURLEncoding.DecodeString(f.Cursor)
	if f.Cursor != "" && (err != nil || len(raw) <= 8) {
		return invalid("the cursor %.40q is not one of ours: start again without it", f.Cursor)
	}
	if f.Cursor != "" {
		p.seen, p.fingerprint = time.UnixMicro(int64(binary.BigEndian.Uint64(raw))).UTC(), string(raw[8:])
	}
	for _, text := range []string{f.Fingerprint, f.Code, f.Kind, p.fingerprint} {
		if err := isText(text); err != nil {
			return err
		}
	}
	return nil
}

// pick builds the query for one page, and one group more that tells whether there is another.
func (p *grouper) pick() query {
	status := "CASE WHEN g.status = 'ignored' AND (g.until <= " + p.bind(p.now) + " OR g.until_count > 0 AND g.failures >= g.until_count) THEN 'open' ELSE g.status END"
	where := []string{"true"}
	if p.filter.Fingerprint != "" {
		where = append(where, "g.fingerprint = "+p.bind(p.filter.Fingerprint))
	}
	if p.filter.Code != "" {
		where = append(where, "g.code = "+p.bind(p.filter.Code))
	}
	if p.filter.Status != "" {
		where = append(where, status+" = "+p.bind(string(p.filter.Status)))
	}
	if p.filter.Kind != "" {
		where = append(where, "EXISTS (SELECT 1 FROM holdfast_error_tally t WHERE t.fingerprint = g.fingerprint AND t.step > "+p.bind(p.now.Add(-week-step))+
			" AND t.kind = "+p.bind(p.filter.Kind)+")")
	}
	if p.filter.Cursor != "" {
		where = append(where, "(g.last_seen, g.fingerprint) < ("+p.bind(p.seen)+", "+p.bind(p.fingerprint)+")")
	}
	text := "SELECT g.fingerprint, g.code, g.category, g.message, g.detail, g.failures, g.first_seen, g.last_seen, " + status +
		", g.until, g.until_count, g.resolved_in, g.actor, g.reason FROM holdfast_error_group g WHERE " + strings.Join(where, " AND ") +
		" ORDER BY g.last_seen DESC, g.fingerprint DESC LIMIT " + p.bind(p.filter.Limit+1)
	return query{text, p.args}
}

func readGroup(r Row) holdfast.ErrorGroup {
	return holdfast.ErrorGroup{
		Fingerprint: r.Text(0), Code: r.Text(1), Category: r.Text(2), Message: r.Text(3), Detail: r.Text(4), Failures: r.Int(5), FirstSeen: r.Time(6), LastSeen: r.Time(7),
		Status: holdfast.Status(r.Text(8)), Until: r.Time(9), UntilCount: r.Int(10), ResolvedIn: r.Text(11), Actor: r.Text(12), Reason: r.Text(13),
	}
}

// tally says of each group where it was seen in the last week, and how often of late. A step counts until all of it is past.
func (i *Inspector) tally(ctx context.Context, groups []holdfast.ErrorGroup, now time.Time) error {
	p := &picker{}
	of := map[string]*holdfast.ErrorGroup{}
	fingerprints := make([]string, len(groups))
	for n := range groups {
		of[groups[n].Fingerprint] = &groups[n]
		fingerprints[n] = p.bind(groups[n].Fingerprint)
	}
	since := func(window time.Duration) string {
		return "CAST(sum(CASE WHEN t.step > " + p.bind(now.Add(-window-step)) + " THEN t.failures ELSE 0 END) AS bigint)"
	}
	text := "SELECT t.fingerprint, t.kind, t.queue, t.dependency, t.version, CAST(sum(t.failures) AS bigint), " + since(day) + ", " + since(3*time.Hour) + ", " + since(time.Hour) +
		" FROM holdfast_error_tally t WHERE t.fingerprint IN (" + strings.Join(fingerprints, ", ") + ") AND t.step > " + p.bind(now.Add(-week-step)) +
		" GROUP BY t.fingerprint, t.kind, t.queue, t.dependency, t.version"
	err := i.q.Query(ctx, text, p.args, func(r Row) error {
		g := of[r.Text(0)]
		g.Kinds, g.Queues, g.Dependencies, g.Versions = append(g.Kinds, r.Text(1)), append(g.Queues, r.Text(2)), append(g.Dependencies, r.Text(3)), append(g.Versions, r.Text(4))
		g.LastWeek += r.Int(5)
		g.LastDay += r.Int(6)
		g.Last3Hours += r.Int(7)
		g.LastHour += r.Int(8)
		return nil
	})
	for n := range groups {
		for _, names := range []*[]string{&groups[n].Kinds, &groups[n].Queues, &groups[n].Dependencies, &groups[n].Versions} {
			*names = set(*names)
		}
	}
	return err
}

// set sorts names and leaves out repetitions and what is empty.
func set(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
