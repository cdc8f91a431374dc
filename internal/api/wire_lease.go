package api

import (
	stdjson "encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfastdev/holdfast"
)

// Leases are encoded and decoded by hand for the same reason as drafts. A test compares the result with that of the JSON library.

func (p *jsonWriter) when(name string, at time.Time) {
	if !at.IsZero() {
		p.name(name)
		p.writeTime(at)
	}
}

// writeTime writes a time. If it is one of the last six, its text is copied instead of formatted again.
func (p *jsonWriter) writeTime(at time.Time) {
	for i := range p.times {
		if s := &p.times[i]; s.at == at && s.to > 0 {
			p.out = append(p.out, p.out[s.from:s.to]...)
			return
		}
	}
	from := len(p.out)
	p.out = append(at.AppendFormat(append(p.out, '"'), time.RFC3339Nano), '"')
	p.times[p.next] = writtenTime{at, from, len(p.out)}
	p.next = (p.next + 1) % len(p.times)
}

func (p *jsonWriter) count(name string, n int) {
	p.name(name)
	p.out = strconv.AppendInt(p.out, int64(n), 10)
}

// raw writes JSON as it is, or as a string if it is not valid.
func (p *jsonWriter) raw(name string, raw stdjson.RawMessage) {
	p.name(name)
	switch {
	case len(raw) == 0:
		p.out = append(p.out, "null"...)
	case compactJSON(raw) || jsontext.Value(raw).IsValid(lenient):
		p.out = append(p.out, raw...)
	default:
		p.out = appendText(p.out, string(raw))
	}
}

// appendJSON encodes leases.
func (c ClaimOut) appendJSON(out []byte) []byte {
	size := 20
	for i := range c.Leases {
		size += 700 + len(c.Leases[i].Args)
	}
	p := jsonWriter{out: append(slices.Grow(out, size), `{"leases":[`...)}
	for i := range c.Leases {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.lease(&c.Leases[i])
	}
	return append(p.out, "]}"...)
}

func (p *jsonWriter) lease(l *Lease) {
	p.open()
	p.out = append(appendID(append(p.out, `"id":"`...), l.ID), '"')
	p.first = false
	p.name("kind")
	p.out = appendText(p.out, l.Kind)
	p.name("queue")
	p.out = appendText(p.out, l.Queue)
	p.raw("args", l.Args)
	p.count("priority", int(l.Priority))
	p.text("owner", l.Owner)
	p.text("dependency", l.Dependency)
	p.id("group", l.Group)
	p.text("step", l.Step)
	p.duration("retry_within", l.RetryWithin)
	p.number("max_attempts", l.MaxAttempts)
	p.text("unique_key", l.UniqueKey)
	p.text("idempotency_key", l.IdempotencyKey)
	p.text("order", l.Order)
	p.text("trace", l.Trace)
	p.name("created_at")
	p.writeTime(l.CreatedAt)
	p.when("run_at", l.RunAt)
	p.when("expire_at", l.ExpireAt)
	p.name("state")
	p.out = appendText(p.out, string(l.State))
	p.when("due_at", l.DueAt)
	p.count("token", l.Token)
	p.count("failures", l.Failures)
	p.count("crashes", l.Crashes)
	p.count("releases", l.Releases)
	p.count("generation", l.Generation)
	p.text("worker", l.Worker)
	p.when("lease_until", l.LeaseUntil)
	p.when("started_at", l.StartedAt)
	p.when("finished_at", l.FinishedAt)
	p.name("as_of")
	p.writeTime(l.AsOf)
	p.rareMembers(l)
	p.name("batch")
	p.out = append(appendID(append(p.out, '"'), l.Batch), '"')
	p.count("attempt", l.Attempt)
	p.when("since", l.Since)
	if len(l.Checkpoint) > 0 {
		p.raw("checkpoint", l.Checkpoint)
	}
	p.text("lost", l.Lost)
	p.text("corrupt", l.Corrupt)
	p.close()
}

// rareMembers writes the members that few leases have.
func (p *jsonWriter) rareMembers(l *Lease) {
	type rare struct {
		Tags        []string             `json:"tags,omitempty"`
		After       []holdfast.ID        `json:"after,omitempty"`
		When        []holdfast.Condition `json:"when,omitempty"`
		OrderHold   bool                 `json:"order_hold,omitempty"`
		Waiting     bool                 `json:"waiting,omitempty"`
		Cancelling  bool                 `json:"cancelling,omitempty"`
		Progress    *holdfast.Progress   `json:"progress,omitempty"`
		LastFailure *holdfast.Failure    `json:"last_failure,omitempty"`
		Result      stdjson.RawMessage   `json:"result,omitempty"`
		Discarded   bool                 `json:"discarded,omitempty"`
		Upstream    holdfast.ID          `json:"upstream,omitzero"`
		Skipped     bool                 `json:"skipped,omitempty"`
	}
	if len(l.Tags) == 0 && len(l.After)+len(l.When) == 0 && !l.OrderHold && !l.Waiting && !l.Cancelling && l.Progress == nil && l.LastFailure == nil && len(l.Result) == 0 && !l.Discarded && l.Upstream.IsZero() && !l.Skipped {
		return
	}
	text, err := json.Marshal(rare{l.Tags, l.After, l.When, l.OrderHold, l.Waiting, l.Cancelling, l.Progress, l.LastFailure, l.Result, l.Discarded, l.Upstream, l.Skipped}, options, lenient)
	if err == nil && len(text) > 2 {
		p.out = append(append(p.out, ','), text[1:len(text)-1]...)
	}
}
