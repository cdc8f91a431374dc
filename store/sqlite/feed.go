package sqlite

import (
	"slices"
	"strconv"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// story is the name of the pages that list events of stories.
const story = "story"

// maxPageEvents is the largest number of events on a page, so that a reader who wants a few does not have to read a
// hundred thousand.
const maxPageEvents = 1000

// A page is the events of one name that one transaction adds to the feed. It refers to rows that never change, and does
// not repeat them.
type page struct {
	name   string
	at     int64
	jobs   []byte  // sixteen bytes for each job
	tokens []int   // the token of each job
	lines  []int64 // row ids of events in holdfast_event, instead of jobs
}

// listenedEvents is the names of the events that have listeners. The writer remembers them until another connection has
// committed.
type listenedEvents struct {
	all         bool
	names       map[string]bool
	uncommitted bool // read in a transaction that changed them and is not committed yet
}

// read reads which events have listeners.
func (e *listenedEvents) read(s *session) error {
	e.all, e.names = false, nil
	return s.rows("listen_list", nil, func(st *sqlite.Stmt) error {
		if e.names == nil {
			e.names = map[string]bool{}
		}
		switch name := st.ColumnText(0); name {
		case "*":
			e.all = true
		case store.EventExpired: // stored as failed: the reader of the feed tells them apart by the code
			e.names[store.EventFailed] = true
		default:
			e.names[name] = true
		}
		return nil
	})
}

// includes reports whether an event of this name has a listener.
func (e *listenedEvents) includes(name string) bool { return e.all || e.names[name] }

// emit adds an event of a job to the page of its name, if the event has a listener.
func (t *tx) emit(name string, job *holdfast.ID, token int) {
	if !t.listened.includes(name) {
		return
	}
	p := t.pageFor(name)
	p.jobs, p.tokens = append(p.jobs, job[:]...), append(p.tokens, token)
}

// emitStoryLine adds the event that was last inserted into holdfast_event to a page. It does not depend on listeners:
// people's actions are always in the feed.
func (t *tx) emitStoryLine() {
	p := t.pageFor(story)
	p.lines = append(p.lines, t.conn.LastInsertRowID())
}

// pageFor returns the call's page for events of one name.
func (t *tx) pageFor(name string) *page {
	for i := range t.pages {
		if t.pages[i].name == name {
			return &t.pages[i]
		}
	}
	t.pages = append(t.pages, page{name: name, at: t.now})
	return &t.pages[len(t.pages)-1]
}

// appendPages adds the pages of one call to those of its transaction. Pages of one name that follow each other become
// one page; the order of the events of one job is kept.
func appendPages(all, more []page) []page {
	for i := range more {
		m := &more[i]
		if n := len(all); n > 0 && len(more) == 1 && all[n-1].name == m.name {
			last := &all[n-1]
			last.at = m.at
			last.jobs, last.tokens, last.lines = append(last.jobs, m.jobs...), append(last.tokens, m.tokens...), append(last.lines, m.lines...)
			continue
		}
		all = append(all, *m)
	}
	return all
}

// writePages numbers the events of a transaction and writes their pages. The head of the feed is advanced in this write
// transaction, immediately before the commit, and there is one writer at a time. So numbers are consecutive and follow
// the order of commits: a reader that has read up to a number never misses an earlier one.
func writePages(to executor, pages []page) error {
	if len(pages) == 0 {
		return nil
	}
	events := 0
	for i := range pages {
		events += len(pages[i].tokens) + len(pages[i].lines)
	}
	var head int64
	if _, err := to.one("advance_feed_head", []any{events}, &head); err != nil {
		return err
	}
	first := head - int64(events) + 1
	for i := range pages {
		for _, p := range pages[i].split() {
			n := len(p.tokens) + len(p.lines)
			jobs, tokens, lines := p.columns()
			if _, err := to.exec("add_page", first, n, p.name, p.at, jobs, tokens, lines); err != nil {
				return err
			}
			first += int64(n)
		}
	}
	return nil
}

// split divides a page that has more than maxPageEvents events.
func (p *page) split() (parts []page) {
	const id = len(holdfast.ID{})
	for tokens := range slices.Chunk(p.tokens, maxPageEvents) {
		at := len(parts) * maxPageEvents * id
		parts = append(parts, page{name: p.name, at: p.at, jobs: p.jobs[at : at+len(tokens)*id], tokens: tokens})
	}
	for lines := range slices.Chunk(p.lines, maxPageEvents) {
		parts = append(parts, page{name: p.name, at: p.at, lines: lines})
	}
	return parts
}

// columns returns a page as the columns of its row.
func (p *page) columns() (jobs, tokens, lines any) {
	if len(p.lines) > 0 {
		return nil, nil, jsonNumbers(p.lines)
	}
	if slices.ContainsFunc(p.tokens, func(token int) bool { return token != 0 }) {
		tokens = jsonNumbers(p.tokens)
	}
	return p.jobs, tokens, nil
}

// jsonNumbers returns numbers as a JSON list.
func jsonNumbers[N int | int64](numbers []N) string {
	text := append(make([]byte, 0, 4*len(numbers)+2), '[')
	for i, n := range numbers {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(n), 10)
	}
	return string(append(text, ']'))
}

// setListener replaces the events for which a listener listens. It takes effect for the rest of this call.
func (t *tx) setListener(l *store.Listener) error {
	if _, err := t.exec("listen_drop", l.Name); err != nil {
		return err
	}
	for _, event := range l.Events {
		if _, err := t.exec("listen_add", event, l.Name); err != nil {
			return err
		}
	}
	return t.reloadListened()
}

// reloadListened reads the listened events again after this call has changed them.
func (t *tx) reloadListened() error {
	t.listened.uncommitted = true
	return t.listened.read(t.session)
}
