package sqlite

import (
	"slices"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

// story is the name of the pages that tell lines of stories.
const story = "story"

// pageful is how many events a page tells at most: a reader who wants a few should not have to read a hundred thousand.
const pageful = 1000

// A page is everything of one sort that one transaction did, as the feed will tell it. It only names rows that never change.
type page struct {
	name   string
	at     int64
	jobs   []byte  // sixteen bytes each
	tokens []int   // of each of the jobs
	lines  []int64 // of stories, instead of jobs
}

// ears are what somebody listens for. The writer remembers it for as long as nobody else has written.
type ears struct {
	all    bool
	names  map[string]bool
	unsure bool // they were read in a transaction that changed them and has not ended well yet
}

// read learns who listens.
func (e *ears) read(s *session) error {
	e.all, e.names = false, nil
	return s.rows("listen_list", nil, func(st *sqlite.Stmt) error {
		if e.names == nil {
			e.names = map[string]bool{}
		}
		switch name := st.ColumnText(0); name {
		case "*":
			e.all = true
		case holdfast.EventExpired: // it is a failure until the reader has seen its code
			e.names[holdfast.EventFailed] = true
		default:
			e.names[name] = true
		}
		return nil
	})
}

// hear reports whether somebody listens for events of this name.
func (e *ears) hear(name string) bool { return e.all || e.names[name] }

// happened puts an event of a job on the page of its sort, if somebody listens.
func (t *tx) happened(name string, job *holdfast.ID, token int) {
	if !t.ears.hear(name) {
		return
	}
	p := t.page(name)
	p.jobs, p.tokens = append(p.jobs, job[:]...), append(p.tokens, token)
}

// line puts the line of a story that was just written on a page, whoever listens.
func (t *tx) line() {
	p := t.page(story)
	p.lines = append(p.lines, t.conn.LastInsertRowID())
}

// page is the call's page for events of one name.
func (t *tx) page(name string) *page {
	for i := range t.pages {
		if t.pages[i].name == name {
			return &t.pages[i]
		}
	}
	t.pages = append(t.pages, page{name: name, at: t.now})
	return &t.pages[len(t.pages)-1]
}

// join adds the pages of one call to those of its transaction. Neighbours of one sort become one page; the order of what happened
// to one job stays what it was.
func join(all, more []page) []page {
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

// publish numbers the pages of a transaction and writes them. Who writes is alone, so the numbers are consecutive.
func publish(to sink, pages []page) error {
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

// split divides a page that tells too much.
func (p *page) split() (parts []page) {
	const id = len(holdfast.ID{})
	for tokens := range slices.Chunk(p.tokens, pageful) {
		at := len(parts) * pageful * id
		parts = append(parts, page{name: p.name, at: p.at, jobs: p.jobs[at : at+len(tokens)*id], tokens: tokens})
	}
	for lines := range slices.Chunk(p.lines, pageful) {
		parts = append(parts, page{name: p.name, at: p.at, lines: lines})
	}
	return parts
}

// columns are a page as its row keeps it.
func (p *page) columns() (jobs, tokens, lines any) {
	if len(p.lines) > 0 {
		return nil, nil, list(p.lines)
	}
	if slices.ContainsFunc(p.tokens, func(token int) bool { return token != 0 }) {
		tokens = list(p.tokens)
	}
	return p.jobs, tokens, nil
}

// list writes numbers as JSON.
func list[N int | int64](numbers []N) string {
	text := append(make([]byte, 0, 4*len(numbers)+2), '[')
	for i, n := range numbers {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(n), 10)
	}
	return string(append(text, ']'))
}

// listen replaces what a listener listens for. What this very call does from here on is heard already.
func (t *tx) listen(l *holdfast.Listener) error {
	if _, err := t.exec("listen_drop", l.Name); err != nil {
		return err
	}
	for _, event := range l.Events {
		if _, err := t.exec("listen_add", event, l.Name); err != nil {
			return err
		}
	}
	return t.rehear()
}

// rehear reads anew who listens, after this call has changed it.
func (t *tx) rehear() error {
	t.ears.unsure = true
	return t.ears.read(t.session)
}
