package api

import (
	"bytes"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfastdev/holdfast"
)

// Calls may carry thousands of drafts, receipts, leases and settlements, so these are encoded by hand, and receipts and plain drafts (readDrafts) are also decoded by hand. The text is the same
// as that of the JSON library with the struct tags; tests compare the two.

// A jsonWriter writes JSON objects by hand, member by member. It remembers the last six times that it formatted: the leases of a claim share most of theirs.
type jsonWriter struct {
	out   []byte
	first bool
	times [6]writtenTime
	next  int // index of the oldest of times
}

// A writtenTime is a time that was already written, and the position of its text in out.
type writtenTime struct {
	at       time.Time
	from, to int
}

func (p *jsonWriter) open() { p.out, p.first = append(p.out, '{'), true }

func (p *jsonWriter) close() { p.out = append(p.out, '}') }

func (p *jsonWriter) name(name string) {
	if !p.first {
		p.out = append(p.out, ',')
	}
	p.first = false
	p.out = append(append(append(p.out, '"'), name...), '"', ':')
}

// text writes a string member, unless it is empty.
func (p *jsonWriter) text(name, text string) {
	if text == "" {
		return
	}
	p.name(name)
	p.out = appendText(p.out, text)
}

func appendText(out []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, err := jsontext.AppendQuote(out, text)
			if err != nil { // not UTF-8: the replacement is not equal either, and the receiver refuses it
				quoted, _ = jsontext.AppendQuote(out, string([]rune(text)))
			}
			return quoted
		}
	}
	return append(append(append(out, '"'), text...), '"')
}

func (p *jsonWriter) number(name string, n int) {
	if n != 0 {
		p.name(name)
		p.out = strconv.AppendInt(p.out, int64(n), 10)
	}
}

func (p *jsonWriter) id(name string, id holdfast.ID) {
	if !id.IsZero() {
		p.name(name)
		p.out = append(appendID(append(p.out, '"'), id), '"')
	}
}

func (p *jsonWriter) duration(name string, d time.Duration) {
	if d != 0 {
		p.name(name)
		p.out = append(append(append(p.out, '"'), d.String()...), '"')
	}
}

// AppendDraft encodes a draft with the given id. Its arguments arrive byte for byte.
func AppendDraft(out []byte, d *holdfast.Draft, id holdfast.ID) ([]byte, error) {
	p := jsonWriter{out: out}
	p.open()
	p.id("id", id)
	p.name("kind")
	p.out = appendText(p.out, d.Kind)
	p.text("queue", d.Queue)
	if len(d.Args) > 0 {
		p.name("args")
		p.out = append(p.out, Mark(d.Args)...)
	}
	p.number("priority", int(d.Priority))
	p.text("owner", d.Owner)
	p.text("dependency", d.Dependency)
	p.id("group", d.Group)
	p.text("step", d.Step)
	p.duration("delay", d.Delay)
	p.duration("expire_in", d.ExpireIn)
	p.duration("retry_within", d.RetryWithin)
	p.number("max_attempts", d.MaxAttempts)
	p.text("unique_key", d.UniqueKey)
	p.text("idempotency_key", d.IdempotencyKey)
	p.text("order", d.Order)
	p.text("trace", d.Trace)
	if len(d.Tags) > 0 || len(d.After)+len(d.When) > 0 || d.AfterAll || d.UniqueDone || d.Replace != nil || d.OrderHold || !d.RunAt.IsZero() || !d.ExpireAt.IsZero() {
		rest, err := Marshal(struct {
			Tags       []string             `json:"tags,omitempty"`
			After      []holdfast.ID        `json:"after,omitempty"`
			AfterAll   bool                 `json:"after_all,omitempty"`
			When       []holdfast.Condition `json:"when,omitempty"`
			UniqueDone bool                 `json:"unique_done,omitempty"`
			Replace    *holdfast.Replace    `json:"replace,omitempty"`
			OrderHold  bool                 `json:"order_hold,omitempty"`
			RunAt      time.Time            `json:"run_at,omitzero"`
			ExpireAt   time.Time            `json:"expire_at,omitzero"`
		}{d.Tags, d.After, d.AfterAll, d.When, d.UniqueDone, d.Replace, d.OrderHold, d.RunAt, d.ExpireAt})
		if err != nil {
			return nil, err
		}
		p.out = append(append(p.out, ','), rest[1:len(rest)-1]...)
	}
	p.close()
	return p.out, nil
}

// appendJSON encodes receipts.
func (b BulkOut) appendJSON(out []byte) []byte {
	out = append(slices.Grow(out, 20+64*len(b.Receipts)), `{"receipts":[`...)
	for i := range b.Receipts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendID(append(out, `{"id":"`...), b.Receipts[i].ID), '"')
		if b.Receipts[i].Existing {
			out = append(out, `,"existing":true`...)
		}
		if b.Receipts[i].Replaced {
			out = append(out, `,"replaced":true`...)
		}
		out = append(out, '}')
	}
	return append(out, "]}"...)
}

// ReadReceipts decodes receipts as BulkOut.appendJSON encodes them. ok is false for any other form; the caller then uses the JSON library.
func ReadReceipts(text []byte, n int) (receipts []holdfast.Receipt, ok bool) {
	rest, ok := bytes.CutPrefix(text, []byte(`{"receipts":[`))
	receipts = make([]holdfast.Receipt, 0, n)
	for ok && !bytes.Equal(rest, []byte("]}")) {
		if len(receipts) > 0 {
			if rest, ok = bytes.CutPrefix(rest, []byte(",")); !ok {
				return nil, false
			}
		}
		if rest, ok = bytes.CutPrefix(rest, []byte(`{"id":"`)); !ok || len(rest) < 37 {
			return nil, false
		}
		id, err := holdfast.ParseID(string(rest[:36]))
		if rest, ok = bytes.CutPrefix(rest[36:], []byte(`"`)); !ok || err != nil {
			return nil, false
		}
		r := holdfast.Receipt{ID: id}
		rest, r.Existing = bytes.CutPrefix(rest, []byte(`,"existing":true`))
		rest, r.Replaced = bytes.CutPrefix(rest, []byte(`,"replaced":true`))
		rest, ok = bytes.CutPrefix(rest, []byte(`}`))
		receipts = append(receipts, r)
	}
	return receipts, ok
}
