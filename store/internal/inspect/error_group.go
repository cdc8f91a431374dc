package inspect

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

const (
	// step is the length of a step in which failures are counted.
	step = 5 * time.Minute
	day  = 24 * time.Hour
	week = 7 * day
)

// ErrorGroups lists the matching error groups, the last seen first. The cursor leads to the next page and is empty on
// the last. A group whose time or count of being ignored is over is shown as open, even if there was no failure since.
func (i *Inspector) ErrorGroups(ctx context.Context, f store.ErrorFilter) ([]store.ErrorGroup, string, error) {
	now, err := i.now(ctx)
	if err != nil {
		return nil, "", err
	}
	p := &errorGroupPicker{picker: picker{now: now}, filter: f}
	if err := p.check(); err != nil {
		return nil, "", err
	}
	var groups []store.ErrorGroup
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
	return groups, cursor, i.addCounts(ctx, groups, now)
}

// An errorGroupPicker builds the query for one page of error groups, as a picker does for jobs.
type errorGroupPicker struct {
	picker
	filter      store.ErrorFilter
	seen        time.Time // where the page before ended
	fingerprint string
}

// checkFilter refuses a filter that makes no sense, and fills in its limit and the position of its cursor.
func (p *errorGroupPicker) check() error {
	f := &p.filter
	switch f.Status {
	case "", store.StatusOpen, store.StatusAcknowledged, store.StatusIgnored, store.StatusResolved, store.StatusRegressed:
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
		return invalid("the cursor %.40q is not valid: start again without it", f.Cursor)
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

// pick builds the query for one page, and one group more that shows whether there is another page.
func (p *errorGroupPicker) pick() query {
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
		where = append(where, "EXISTS (SELECT 1 FROM holdfast_error_count t WHERE t.fingerprint = g.fingerprint AND t.step > "+p.bind(p.now.Add(-week-step))+
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

func readGroup(r Row) store.ErrorGroup {
	return store.ErrorGroup{
		Fingerprint: r.Text(0), Code: r.Text(1), Category: r.Text(2), Message: r.Text(3), Detail: r.Text(4), Failures: r.Int(5), FirstSeen: r.Time(6), LastSeen: r.Time(7),
		Status: store.Status(r.Text(8)), Until: r.Time(9), UntilCount: r.Int(10), ResolvedIn: r.Text(11), Actor: r.Text(12), Reason: r.Text(13),
	}
}

// addCounts fills in where each group was seen in the last week, and how many failures it had recently. A step counts
// until all of it is over: an hour that lies only partly within a window is read separately from the whole ones.
func (i *Inspector) addCounts(ctx context.Context, groups []store.ErrorGroup, now time.Time) error {
	of := map[string]*store.ErrorGroup{}
	names := make([]string, len(groups))
	for n := range groups {
		names[n], of[groups[n].Fingerprint] = groups[n].Fingerprint, &groups[n]
	}
	rows, err := i.errorHours(ctx, groups, firstHour(windowStart(week, now)), now)
	if err != nil {
		return err
	}
	begins, whole := make([]time.Time, len(windows)), make([]time.Time, len(windows))
	for n, window := range windows {
		begins[n] = windowStart(window.lasts, now)
		whole[n] = firstHour(begins[n])
	}
	for _, row := range rows {
		g := of[row.fingerprint]
		for n := 0; n < len(windows) && !row.hour.Before(whole[n]); n++ { // the longest window first
			*windows[n].of(g) += row.failures
		}
		row.seen(g)
	}
	for n, window := range windows {
		partial, err := i.readErrorHours(ctx, names, begins[n], whole[n].Add(-time.Microsecond))
		if err != nil {
			return err
		}
		for _, row := range partial {
			g := of[row.fingerprint]
			*window.of(g) += row.failures
			row.seen(g)
		}
	}
	for n := range groups {
		for _, names := range []*[]string{&groups[n].Kinds, &groups[n].Queues, &groups[n].Dependencies, &groups[n].Versions} {
			*names = set(*names)
		}
	}
	return nil
}

// windowStart returns where a window begins: a step that began earlier is over.
func windowStart(lasts time.Duration, now time.Time) time.Time {
	return now.Add(-lasts - step + time.Microsecond)
}

// windows are the durations for which failures are counted, the longest first.
var windows = []struct {
	lasts time.Duration
	of    func(g *store.ErrorGroup) *int
}{
	{week, func(g *store.ErrorGroup) *int { return &g.LastWeek }}, {day, func(g *store.ErrorGroup) *int { return &g.LastDay }},
	{3 * hour, func(g *store.ErrorGroup) *int { return &g.Last3Hours }}, {hour, func(g *store.ErrorGroup) *int { return &g.LastHour }},
}

// seen notes where a group was seen.
func (e errorHour) seen(g *store.ErrorGroup) {
	g.Kinds, g.Queues = appendNew(g.Kinds, e.kind), appendNew(g.Queues, e.queue)
	g.Dependencies, g.Versions = appendNew(g.Dependencies, e.dependency), appendNew(g.Versions, e.version)
}

func appendNew(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// set returns the names sorted, without repetitions and empty ones.
func set(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
