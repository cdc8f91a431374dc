package inspect

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const (
	usualFeed   = 200
	largestFeed = 10_000

	// story is the name of pages that list events of stories.
	story = "story"
)

// A feedEvent is an event of the feed while its details are read.
type feedEvent struct {
	store.Event
	line int // the row id of an event of a story; 0: an event of a job
}

// Feed returns up to limit events that follow a number, in order: 200 if limit is zero, 10,000 at most. Pages only
// refer to what happened; the rest is read from the rows of jobs, attempts, ends and stories, or from what retention
// has left of them.
func (i *Inspector) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	if after < 0 || limit < 0 {
		return store.Feed{}, invalid("%d events after number %d: ask for 1 to %d, after 0 or the last number that was read", limit, after, largestFeed)
	}
	if limit == 0 {
		limit = usualFeed
	}
	limit = min(limit, largestFeed)
	from := after
	feed, events, err := i.pages(ctx, from, limit)
	if err == nil && feed.Head < after {
		return store.Feed{}, invalid("the feed ends at %d, and you have read to %d: that number is from another store; read on after %d, or after 0 from the beginning",
			feed.Head, after, feed.Head)
	}
	for err == nil && feed.Purged > from {
		from = feed.Purged // retention may delete more meanwhile
		feed, events, err = i.pages(ctx, from, limit)
	}
	if err == nil {
		err = i.complete(ctx, events)
	}
	if err != nil {
		return store.Feed{}, err
	}
	feed.Missed = from - after
	feed.Next = max(from, feed.Head)
	feed.Events = make([]store.Event, 0, len(events))
	for n, bytes := 0, 0; n < len(events); n++ {
		e := &events[n].Event
		if bytes += len(e.Subject) + len(e.Reason) + len(e.Actor) + len(e.Owner); bytes > largestBytes && n > 0 {
			break // the caller continues after Next
		}
		feed.Events = append(feed.Events, *e)
		feed.Next = e.Seq
	}
	return feed, nil
}

// complete fills in what the pages do not contain.
func (i *Inspector) complete(ctx context.Context, events []feedEvent) error {
	if err := i.readLines(ctx, events); err != nil {
		return err
	}
	if err := i.readFacts(ctx, events); err != nil {
		return err
	}
	return i.readOwners(ctx, events)
}

// pages reads the events that pages list after a number, and the head of the feed.
func (i *Inspector) pages(ctx context.Context, after int64, limit int) (feed store.Feed, events []feedEvent, err error) {
	err = i.q.Query(ctx, i.statements["inspect_feed"], []any{int(after), limit}, func(r Row) error {
		feed.Head, feed.Purged = int64(r.Int(0)), int64(r.Int(1))
		if r.Null(2) {
			return nil
		}
		p := page{first: int64(r.Int(2)), events: r.Int(3), name: r.Text(4), at: r.Time(5), jobs: r.Text(6)}
		p.skip = int(max(0, after+1-p.first))
		p.tokens, p.lines = p.list(r.Text(7)), p.list(r.Text(8))
		for n := p.skip; n < p.events && len(events) < limit; n++ {
			events = append(events, p.event(n))
		}
		return nil
	})
	return feed, events, err
}

// A page is a row of the outbox. Its lists begin with the first wanted event.
type page struct {
	first  int64
	events int
	name   string
	at     time.Time
	skip   int    // how many of its events come before the first wanted one
	jobs   string // 32 hex digits each
	tokens []int
	lines  []int
}

// list reads a list of numbers in JSON. A list of the whole page is cut.
func (p *page) list(text string) []int {
	list := integers(text)
	if len(list) == p.events {
		list = list[min(p.skip, len(list)):]
	}
	return list
}

// integers reads a JSON list of integers. A page may have a hundred thousand, so it does not use encoding/json. A
// damaged list yields fewer numbers, and the integrity check reports it.
func integers(text string) []int {
	list := make([]int, 0, strings.Count(text, ",")+1)
	for number := range strings.SplitSeq(strings.Trim(text, "[] "), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// event returns the nth event of the page, with what the page itself contains.
func (p *page) event(n int) feedEvent {
	t := feedEvent{Event: store.Event{Seq: p.first + int64(n), Name: p.name, At: p.at, Generation: 1}}
	n -= p.skip
	if p.name == story {
		t.Name, t.line, t.Generation = forgotten, -1, 0
		if n < len(p.lines) {
			t.line = p.lines[n]
		}
		return t
	}
	const digits = 2 * len(t.Job)
	if len(p.jobs) >= digits*(n+1) {
		_, _ = hex.Decode(t.Job[:], []byte(p.jobs[digits*n:digits*(n+1)])) // a damaged id is none
	}
	if n < len(p.tokens) {
		t.Token = p.tokens[n]
	}
	return t
}

// forgotten is the name of an event of a story that retention has deleted.
const forgotten = "forgotten"

// readLines reads the events of stories. An event that was deleted keeps the name "forgotten".
func (i *Inspector) readLines(ctx context.Context, events []feedEvent) error {
	var at []int
	list := []byte{'['}
	for n := range events {
		if events[n].line > 0 {
			at = append(at, n)
			list = strconv.AppendInt(separate(list), int64(events[n].line), 10)
		}
	}
	if len(at) == 0 {
		return nil
	}
	return i.q.Query(ctx, i.statements["inspect_story_lines"], []any{string(append(list, ']'))}, func(r Row) error {
		e := &events[at[r.Int(0)]].Event
		e.Job, e.Subject, e.At, e.Name, e.Actor = r.ID(1), r.Text(2), r.Time(3), r.Text(4), r.Text(5)
		e.Reason, e.Request, e.Token, e.Generation = r.Text(6), r.Text(7), r.Int(8), r.Int(9)
		return nil
	})
}

// readOwners fills in the owners of the events of groups.
func (i *Inspector) readOwners(ctx context.Context, events []feedEvent) error {
	var named idList
	for n := range events {
		e := &events[n].Event
		if group, is := groupOf(e.Subject); is {
			e.Group = group
			named.add(n, group, 0)
		}
	}
	return i.queryByID(ctx, "inspect_group_names", &named, func(n int, r Row) {
		events[n].Owner = r.Text(1)
		if name := r.Text(2); name != "" {
			events[n].Context = map[string]string{"name": name}
		}
	})
}

// An idList is ids and tokens as one argument of a statement, and the index of the event for each.
type idList struct {
	at   []int
	list []byte
}

func (n *idList) add(at int, id holdfast.ID, token int) {
	n.at = append(n.at, at)
	n.list = append(separate(n.list), '"')
	n.list = hex.AppendEncode(n.list, id[:])
	n.list = append(strconv.AppendInt(n.list, int64(token), 10), '"')
}

// queryByID runs a statement for a list of ids. The first column of a row says which of them it belongs to.
func (i *Inspector) queryByID(ctx context.Context, name string, named *idList, each func(n int, r Row)) error {
	if len(named.at) == 0 {
		return nil
	}
	return i.q.Query(ctx, i.statements[name], []any{"[" + string(named.list) + "]"}, func(r Row) error {
		each(named.at[r.Int(0)], r)
		return nil
	})
}

// separate appends a comma if the list is not empty.
func separate(list []byte) []byte {
	if len(list) > 0 && list[len(list)-1] != '[' {
		return append(list, ',')
	}
	return list
}
