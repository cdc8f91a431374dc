package postgres

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// copyIn writes entries in bulk, inside the transaction that is open on the connection. COPY cannot ask for the time, so it
// is asked once before.
func (s *Store) copyIn(ctx context.Context, conn *pgx.Conn, entries []entry) error {
	var now time.Time
	if err := conn.QueryRow(ctx, s.sql["now"]).Scan(&now); err != nil {
		return err
	}
	var ready, later, expiring []*entry
	for i := range entries {
		e := &entries[i]
		if e.due(now).IsZero() {
			ready = append(ready, e)
		} else {
			later = append(later, e)
		}
		if !e.expire(now).IsZero() {
			expiring = append(expiring, e)
		}
	}
	for _, part := range []struct {
		into string
		rows stream
	}{
		{"holdfast_job (id, lane, kind, queue, priority, max_attempts, created_at, run_at, expire_at, owner, tags, unique_key, unique_done, idempotency_key, args)",
			stream{left: pointers(entries), line: func(l *line, e *entry) { l.facts(e, now) }}},
		{"holdfast_ready (lane, priority, job, token, failures, crashes, interrupts, generation)",
			stream{left: ready, line: func(l *line, e *entry) {
				l.int(int(e.lane)).int(int(e.Priority)).word(e.ID.String()).word("0").word("0").word("0").word("0").word("1")
			}}},
		{"holdfast_later (due_at, job, token, failures, crashes, interrupts, generation)",
			stream{left: later, line: func(l *line, e *entry) {
				l.time(e.due(now)).word(e.ID.String()).word("0").word("0").word("0").word("0").word("1")
			}}},
		{"holdfast_expiry (expire_at, job)",
			stream{left: expiring, line: func(l *line, e *entry) { l.time(e.expire(now)).word(e.ID.String()) }}},
	} {
		if len(part.rows.left) == 0 {
			continue
		}
		if hears, ok := conn.Config().Tracer.(tracer); ok { // the driver does not tell it
			hears("copy to " + part.into)
		}
		if _, err := conn.PgConn().CopyFrom(ctx, &part.rows, "COPY "+part.into+" FROM STDIN"); err != nil {
			return err
		}
	}
	return nil
}

func pointers(entries []entry) []*entry {
	list := make([]*entry, len(entries))
	for i := range entries {
		list[i] = &entries[i]
	}
	return list
}

// due is when the entry may start, if that is not at once.
func (e *entry) due(now time.Time) time.Time {
	due := e.RunAt
	if e.Delay > 0 {
		due = now.Add(e.Delay)
	}
	if !due.Truncate(time.Microsecond).After(now) {
		return time.Time{}
	}
	return due
}

// expire is when the entry must have started, if ever.
func (e *entry) expire(now time.Time) time.Time {
	if e.ExpireIn > 0 {
		return now.Add(e.ExpireIn)
	}
	return e.ExpireAt
}

// A stream writes entries as lines of COPY's text form, a few at a time.
type stream struct {
	left []*entry
	line func(*line, *entry)
	buf  line
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.buf) < len(p) && len(s.left) > 0 {
		s.line(&s.buf, s.left[0])
		s.buf[len(s.buf)-1] = '\n' // in place of the last tab
		s.left = s.left[1:]
	}
	if len(s.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.buf)
	s.buf = append(s.buf[:0], s.buf[n:]...)
	return n, nil
}

// A line is made of words, each followed by a tab.
type line []byte

func (l *line) word(word string) *line {
	*l = append(append(*l, word...), '\t')
	return l
}

func (l *line) int(n int) *line {
	*l = append(strconv.AppendInt(*l, int64(n), 10), '\t')
	return l
}

func (l *line) time(t time.Time) *line {
	if t.IsZero() {
		return l.word(`\N`)
	}
	*l = append(t.UTC().AppendFormat(*l, instant), '\t')
	return l
}

// text writes what may contain anything.
func (l *line) text(text []byte) *line {
	for _, b := range text {
		switch b {
		case '\\':
			*l = append(*l, '\\', '\\')
		case '\t':
			*l = append(*l, '\\', 't')
		case '\n':
			*l = append(*l, '\\', 'n')
		case '\r':
			*l = append(*l, '\\', 'r')
		default:
			*l = append(*l, b)
		}
	}
	*l = append(*l, '\t')
	return l
}

// some writes a text, or NULL when there is none.
func (l *line) some(text string) *line {
	if text == "" {
		return l.word(`\N`)
	}
	return l.text([]byte(text))
}

func (l *line) facts(e *entry, now time.Time) {
	tags := ""
	if len(e.Tags) > 0 {
		tags = texts(e.Tags)
	}
	l.word(e.ID.String()).int(int(e.lane)).word(e.Kind).word(e.Queue).int(int(e.Priority)).int(e.MaxAttempts)
	l.time(now).time(e.due(now)).time(e.expire(now)).some(e.Owner).some(tags)
	l.some(e.UniqueKey).word(strconv.FormatBool(e.UniqueDone)).some(e.IdempotencyKey).text(e.Args)
}
