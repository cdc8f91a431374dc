package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
)

// copyIn inserts entries with COPY, in the transaction that is open on the connection. COPY cannot call the database's clock, so copyIn reads it
// first; all entries get the same time.
func (s *Store) copyIn(ctx context.Context, conn *pgx.Conn, entries []entry) error {
	var now time.Time
	if err := conn.QueryRow(ctx, s.sql["now"]).Scan(&now); err != nil {
		return err
	}
	var ready, later, waiting, expiring []*entry
	for i := range entries {
		e := &entries[i]
		switch {
		case e.waits():
			waiting = append(waiting, e)
		case e.due(now).IsZero():
			ready = append(ready, e)
		default:
			later = append(later, e)
		}
		if !e.expire(now).IsZero() {
			expiring = append(expiring, e)
		}
	}
	for _, part := range []struct {
		into string
		rows []*entry
		row  func(*tuple, *entry)
	}{
		{"holdfast_job (id, lane, kind, queue, priority, max_attempts, created_at, run_at, expire_at, owner, tags, unique_key, unique_done, idempotency_key, dependency, retry_within, group_id, trace, args)",
			pointers(entries), func(t *tuple, e *entry) { t.facts(e, now) }},
		{"holdfast_ready (lane, priority, job)", ready, func(t *tuple, e *entry) { t.fields(3).int(e.lane).small(e.Priority).id(e.ID) }},
		{"holdfast_later (due_at, job)", later, func(t *tuple, e *entry) { t.fields(2).time(e.due(now)).id(e.ID) }},
		{"holdfast_later (due_at, job, hold)", waiting, func(t *tuple, e *entry) { t.fields(3).time(e.waitingDueAt(now)).id(e.ID).text("") }},
		{"holdfast_expiry (expire_at, job)", expiring, func(t *tuple, e *entry) { t.fields(2).time(e.expire(now)).id(e.ID) }},
	} {
		if err := copyTo(ctx, conn, s.schema.prefix()+part.into, len(part.rows), func(t *tuple, i int) { part.row(t, part.rows[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// copyTo inserts rows into a table; into is the table with its columns.
func copyTo(ctx context.Context, conn *pgx.Conn, into string, rows int, row func(*tuple, int)) error {
	if rows == 0 {
		return nil
	}
	if trace, ok := conn.Config().Tracer.(tracer); ok { // pgx does not trace this call
		trace("copy to " + into)
	}
	_, err := conn.PgConn().CopyFrom(ctx, &copyReader{rows: rows, row: row}, "COPY "+into+" FROM STDIN (FORMAT binary)")
	return err
}

// copy flushes the pipeline and then inserts rows with COPY, so that they are written before everything queued later.
func (p *pipeline) copy(ctx context.Context, into string, rows int, row func(*tuple, int)) error {
	if err := p.flush(ctx); err != nil {
		return err
	}
	return copyTo(ctx, p.conn, p.schema.prefix()+into, rows, row)
}

func pointers(entries []entry) []*entry {
	list := make([]*entry, len(entries))
	for i := range entries {
		list[i] = &entries[i]
	}
	return list
}

// due is when the job becomes claimable, or the zero time for at once.
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

// waitingDueAt is the due_at of a job that waits for other members of its group: its own due time plus a thousand years, so that Promote does not see
// it.
func (e *entry) waitingDueAt(now time.Time) time.Time {
	due := e.due(now)
	if due.IsZero() {
		due = now
	}
	return due.UTC().AddDate(0, 0, 365250)
}

// expire is when the job expires, or the zero time for never.
func (e *entry) expire(now time.Time) time.Time {
	if e.ExpireIn > 0 {
		return now.Add(e.ExpireIn)
	}
	return e.ExpireAt
}

// A copyReader produces rows in the binary format of COPY, one buffer at a time. The text format would cost the database about twice as much to
// parse.
type copyReader struct {
	rows   int
	row    func(*tuple, int)
	next   int // index of the next row
	buf    tuple
	sent   int // bytes of buf that were read
	headed bool
	ended  bool
}

func (s *copyReader) Read(p []byte) (int, error) {
	if s.sent == len(s.buf) {
		s.fill(len(p))
	}
	if len(s.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.buf[s.sent:])
	s.sent += n
	return n, nil
}

// fill produces the next buffer: header, rows and trailer, or nothing at the end.
func (s *copyReader) fill(size int) {
	s.buf, s.sent = s.buf[:0], 0
	if !s.headed {
		s.headed, s.buf = true, append(s.buf, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	}
	for ; len(s.buf) < size && s.next < s.rows; s.next++ {
		s.row(&s.buf, s.next)
	}
	if s.next == s.rows && !s.ended {
		s.ended = true
		s.buf.fields(-1)
	}
}

// A tuple is one row: the number of fields, then each field with its length.
type tuple []byte

func (t *tuple) fields(n int) *tuple {
	*t = binary.BigEndian.AppendUint16(*t, uint16(n))
	return t
}

func (t *tuple) size(n int) *tuple {
	*t = binary.BigEndian.AppendUint32(*t, uint32(n))
	return t
}

func (t *tuple) null() *tuple { return t.size(-1) }

func (t *tuple) id(id holdfast.ID) *tuple {
	*t = append(*t.size(len(id)), id[:]...)
	return t
}

func (t *tuple) int(n int32) *tuple { return t.size(4).size(int(n)) }

func (t *tuple) small(n int16) *tuple { return t.size(2).fields(int(n)) }

func (t *tuple) bool(b bool) *tuple {
	bit := byte(0)
	if b {
		bit = 1
	}
	*t = append(*t.size(1), bit)
	return t
}

func (t *tuple) text(text string) *tuple {
	*t = append(*t.size(len(text)), text...)
	return t
}

// textOrNull writes a text, or NULL for an empty one.
func (t *tuple) textOrNull(text string) *tuple {
	if text == "" {
		return t.null()
	}
	return t.text(text)
}

// epoch is the zero of the database's binary timestamps: 2000-01-01, in microseconds since 1970.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// time writes a timestamp, or NULL for the zero time.
func (t *tuple) time(at time.Time) *tuple {
	if at.IsZero() {
		return t.null()
	}
	*t = binary.BigEndian.AppendUint64(*t.size(8), uint64(at.UnixMicro()-epoch))
	return t
}

// duration writes a duration in microseconds, or NULL for zero.
func (t *tuple) duration(d time.Duration) *tuple {
	if d == 0 {
		return t.null()
	}
	*t = binary.BigEndian.AppendUint64(*t.size(8), uint64(d.Microseconds()))
	return t
}

// list writes an array of texts, or NULL for none: number of dimensions, NULL flag, element type, length, lower bound, elements.
func (t *tuple) list(texts []string) *tuple {
	if len(texts) == 0 {
		return t.null()
	}
	size := 20
	for _, text := range texts {
		size += 4 + len(text)
	}
	t.size(size).size(1).size(0).size(pgtype.TextOID).size(len(texts)).size(1)
	for _, text := range texts {
		t.text(text)
	}
	return t
}

// member writes the id and the counters of a job.
func (t *tuple) member(m *member) *tuple {
	t.id(m.job)
	for _, n := range []int{m.token, m.failures, m.crashes, m.releases, m.generation} {
		t.int(int32(n))
	}
	return t
}

// facts writes the row of holdfast_job.
func (t *tuple) facts(e *entry, now time.Time) {
	t.fields(19).id(e.ID).int(e.lane).text(e.Kind).text(e.Queue).small(e.Priority).int(int32(e.MaxAttempts))
	t.time(now).time(e.due(now)).time(e.expire(now)).textOrNull(e.Owner).list(e.Tags)
	t.textOrNull(e.UniqueKey).bool(e.UniqueDone).textOrNull(e.IdempotencyKey).textOrNull(e.Dependency).duration(e.RetryWithin)
	if e.Group.IsZero() {
		t.null()
	} else {
		t.id(e.Group)
	}
	t.textOrNull(e.Trace)
	*t = append(*t.size(len(e.Args)), e.Args...)
}
