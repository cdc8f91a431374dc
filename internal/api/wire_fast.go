package api

import (
	"bytes"
	"encoding/hex"
	stdjson "encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A fastReader decodes the JSON that the encoders of this package write: no whitespace, members in a fixed order, strings without escapes. On
// anything else it sets failed, and the caller decodes the same text with the JSON library.
//
// This is safe because it accepts only a subset of what the library accepts, and decodes that subset to the same values. So both paths accept and
// refuse the same requests. Fuzz tests compare them.
type fastReader struct {
	rest   []byte
	failed bool
	times  [6]parsedTime
	next   int // index of the oldest of times
}

// parsedTime is a time that was already parsed. The leases of a claim share most of theirs.
type parsedTime struct {
	text []byte
	at   time.Time
}

// decodeFast decodes the lists that may have thousands of entries, and reports whether it could. If not, to is unchanged, and the caller uses the JSON
// library.
func decodeFast(text []byte, to any) (done bool) {
	switch to := to.(type) {
	case *[]holdfast.Draft:
		*to, done = fastList(text, "[", "]", (*fastReader).draft, *to)
	case *settlements:
		to.Settlements, done = fastList(text, `{"settlements":[`, "]}", (*fastReader).settlement, to.Settlements)
	case *ClaimOut:
		to.Leases, done = fastList(text, `{"leases":[`, "]}", (*fastReader).lease, to.Leases)
	case *Answers:
		to.Answers, done = fastList(text, `{"answers":[`, "]}", (*fastReader).success, to.Answers)
	}
	return done
}

// fastList decodes a list of at most MostDrafts entries. An entry that the fastReader cannot decode is decoded by the JSON library on its own, so one
// unusual entry does not slow down the rest. read gets the previous entry too, from which it may share strings. On false the result is otherwise.
func fastList[T any](text []byte, begin, end string, read func(q *fastReader, to, last *T), otherwise []T) ([]T, bool) {
	q := fastReader{rest: text}
	if !q.take(begin) {
		return otherwise, false
	}
	list := make([]T, 1, 2) // the first is empty: it is the previous entry of the first
	for !q.take(end) {
		if len(list) > MostDrafts || len(list) > 1 && !q.take(",") {
			return otherwise, false
		}
		before := q.rest
		list = append(list, list[0])
		one := &list[len(list)-1]
		if read(&q, one, &list[len(list)-2]); q.failed {
			n := afterValue(before)
			if *one = list[0]; n <= 0 || json.Unmarshal(before[:n], one, options) != nil {
				return otherwise, false
			}
			q.rest, q.failed = before[n:], false
		}
		if len(list) == 2 { // assume that the other entries have about the same length
			list = slices.Grow(list, min(MostDrafts, len(q.rest)/(len(before)-len(q.rest))))
		}
	}
	return list[1:], len(q.rest) == 0
}

// take skips a text if it comes next.
func (q *fastReader) take(text string) bool {
	if len(q.rest) < len(text) || string(q.rest[:len(text)]) != text {
		return false
	}
	q.rest = q.rest[len(text):]
	return true
}

// must skips a text; anything else is a failure.
func (q *fastReader) must(text string) { q.failed = !q.take(text) || q.failed }

// plainString reads a string that has no escapes.
func (q *fastReader) plainString() []byte {
	if len(q.rest) < 2 || q.rest[0] != '"' {
		q.failed = true
		return nil
	}
	i, wide := 1, false
	for ; i < len(q.rest) && (unescaped[q.rest[i]] || q.rest[i] >= utf8.RuneSelf); i++ {
		wide = wide || q.rest[i] >= utf8.RuneSelf
	}
	if i == len(q.rest) || q.rest[i] != '"' || wide && !utf8.Valid(q.rest[1:i]) {
		q.failed = true
		return nil
	}
	word := q.rest[1:i]
	q.rest = q.rest[i+1:]
	return word
}

// text reads a string member that may be missing. If the string equals last, it shares its memory.
func (q *fastReader) text(member string, to *string, last string) {
	if !q.take(member) {
		return
	}
	if word := q.plainString(); string(word) == last {
		*to = last
	} else {
		*to = string(word)
	}
}

func (q *fastReader) state(member string, to *holdfast.State, last holdfast.State) {
	var text string
	q.text(member, &text, string(last))
	*to = holdfast.State(text)
}

func (q *fastReader) id(member string, to *holdfast.ID) {
	if !q.take(member) {
		return
	}
	if len(q.rest) < 38 || q.rest[0] != '"' || q.rest[37] != '"' {
		q.failed = true
		return
	}
	s := q.rest[1:37]
	q.rest = q.rest[38:]
	if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		q.failed = true
		return
	}
	part := func(to, from []byte) {
		if _, err := hex.Decode(to, from); err != nil {
			q.failed = true
		}
	}
	part(to[:4], s[:8])
	part(to[4:6], s[9:13])
	part(to[6:8], s[14:18])
	part(to[8:10], s[19:23])
	part(to[10:], s[24:])
}

// number reads an integer of at most 15 digits.
func (q *fastReader) number(member string, to *int) {
	if !q.take(member) {
		return
	}
	minus := q.take("-")
	n, i := 0, 0
	for ; i < len(q.rest) && i < 16 && q.rest[i] >= '0' && q.rest[i] <= '9'; i++ {
		n = 10*n + int(q.rest[i]-'0')
	}
	if i == 0 || i == 16 || q.rest[0] == '0' && (i > 1 || minus) {
		q.failed = true
		return
	}
	if q.rest = q.rest[i:]; minus {
		n = -n
	}
	*to = n
}

func (q *fastReader) priority(member string, to *int16) {
	var n int
	q.number(member, &n)
	if *to = int16(n); int(*to) != n {
		q.failed = true
	}
}

func (q *fastReader) duration(member string, to *time.Duration) {
	if q.take(member) {
		d, err := ParseDuration(string(q.plainString()))
		*to, q.failed = d, q.failed || err != nil
	}
}

func (q *fastReader) when(member string, to *time.Time) {
	if !q.take(member) {
		return
	}
	text := q.plainString()
	for i := range q.times {
		if string(q.times[i].text) == string(text) && text != nil {
			*to = q.times[i].at
			return
		}
	}
	if to.UnmarshalText(text) != nil {
		q.failed = true
		return
	}
	q.times[q.next] = parsedTime{text, *to}
	q.next = (q.next + 1) % len(q.times)
}

// raw reads any valid JSON value. The result shares memory with the input.
func (q *fastReader) raw(member string, to *stdjson.RawMessage) {
	if !q.take(member) {
		return
	}
	s := jsonScanner{text: q.rest}
	n := 0
	if s.value(1) && (!s.wide || utf8.Valid(q.rest[:s.at])) {
		n = s.at
	} else if n = afterValue(q.rest); n <= 0 || q.rest[0] <= ' ' || q.rest[n-1] <= ' ' || !validJSON(q.rest[:n]) {
		q.failed = true
		return
	}
	*to, q.rest = q.rest[:n:n], q.rest[n:]
}

// success reads the null that stands for success.
func (q *fastReader) success(_, _ **Problem) { q.must("null") }

// draft decodes what AppendDraft encodes.
func (q *fastReader) draft(d, last *holdfast.Draft) {
	q.must("{")
	if q.id(`"id":`, &d.ID); !d.ID.IsZero() {
		q.must(",")
	}
	q.must(`"kind":`)
	q.text("", &d.Kind, last.Kind)
	q.text(`,"queue":`, &d.Queue, last.Queue)
	q.raw(`,"args":`, &d.Args)
	q.priority(`,"priority":`, &d.Priority)
	q.text(`,"owner":`, &d.Owner, last.Owner)
	q.text(`,"dependency":`, &d.Dependency, last.Dependency)
	q.id(`,"group":`, &d.Group)
	q.duration(`,"delay":`, &d.Delay)
	q.duration(`,"expire_in":`, &d.ExpireIn)
	q.duration(`,"retry_within":`, &d.RetryWithin)
	q.number(`,"max_attempts":`, &d.MaxAttempts)
	q.text(`,"unique_key":`, &d.UniqueKey, "")
	q.text(`,"idempotency_key":`, &d.IdempotencyKey, "")
	q.text(`,"trace":`, &d.Trace, last.Trace)
	q.must("}") // the arguments share memory with the request body: drafts are not used after the request
}

// settlement decodes what jsonWriter.settlement encodes, if it has neither a failure nor a reason.
func (q *fastReader) settlement(s, last *Settlement) {
	q.must(`{"batch":`)
	q.id("", &s.Batch)
	q.must(`,"job":`)
	q.id("", &s.Job)
	q.must(`,"token":`)
	q.number("", &s.Token)
	q.must(`,"to":`)
	q.state("", &s.To, last.To)
	q.duration(`,"delay":`, &s.Delay)
	charge := ""
	q.text(`,"charge":`, &charge, string(last.Charge))
	s.Charge = store.Charge(charge)
	q.number(`,"limit":`, &s.Limit)
	q.duration(`,"start_within":`, &s.StartWithin)
	q.text(`,"version":`, &s.Version, last.Version)
	q.text(`,"queue":`, &s.Queue, last.Queue)
	q.duration(`,"took":`, &s.Took)
	q.raw(`,"result":`, &s.Result)
	q.must("}")
}

// lease decodes what jsonWriter.lease encodes, if it has none of the members that few leases have.
func (q *fastReader) lease(l, last *Lease) {
	q.must(`{"id":`)
	q.id("", &l.ID)
	q.text(`,"kind":`, &l.Kind, last.Kind)
	q.text(`,"queue":`, &l.Queue, last.Queue)
	q.raw(`,"args":`, &l.Args)
	q.priority(`,"priority":`, &l.Priority)
	q.text(`,"owner":`, &l.Owner, last.Owner)
	q.text(`,"dependency":`, &l.Dependency, last.Dependency)
	q.id(`,"group":`, &l.Group)
	q.duration(`,"retry_within":`, &l.RetryWithin)
	q.number(`,"max_attempts":`, &l.MaxAttempts)
	q.text(`,"unique_key":`, &l.UniqueKey, "")
	q.text(`,"idempotency_key":`, &l.IdempotencyKey, "")
	q.text(`,"trace":`, &l.Trace, last.Trace)
	q.when(`,"created_at":`, &l.CreatedAt)
	q.when(`,"run_at":`, &l.RunAt)
	q.when(`,"expire_at":`, &l.ExpireAt)
	q.state(`,"state":`, &l.State, last.State)
	q.when(`,"due_at":`, &l.DueAt)
	q.number(`,"token":`, &l.Token)
	q.number(`,"failures":`, &l.Failures)
	q.number(`,"crashes":`, &l.Crashes)
	q.number(`,"interrupts":`, &l.Releases)
	q.number(`,"generation":`, &l.Generation)
	q.text(`,"worker":`, &l.Worker, last.Worker)
	q.when(`,"lease_until":`, &l.LeaseUntil)
	q.when(`,"started_at":`, &l.StartedAt)
	q.when(`,"finished_at":`, &l.FinishedAt)
	q.when(`,"as_of":`, &l.AsOf)
	q.id(`,"batch":`, &l.Batch)
	q.number(`,"attempt":`, &l.Attempt)
	q.when(`,"since":`, &l.Since)
	q.raw(`,"checkpoint":`, &l.Checkpoint)
	l.Args, l.Checkpoint = bytes.Clone(l.Args), bytes.Clone(l.Checkpoint) // a copy, because one job may run long after the others of its claim: it must not keep the whole answer in memory
	q.text(`,"lost":`, &l.Lost, "")
	q.text(`,"corrupt":`, &l.Corrupt, "")
	q.must("}")
}
