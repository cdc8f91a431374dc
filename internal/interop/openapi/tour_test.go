package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// A step is one request of the tour. $name stands for what an earlier step has saved.
type step struct {
	name string // of the operation
	of   string // what its path names
	with string // its query, or its body
	save string // name=field: keeps a field of the answer; a number is an index
}

// tour calls every operation of the API. The requests and answers are the examples of the document.
var tour = []step{
	{"make-key", "", `{"name": "the shop", "scope": "operator", "owner": "acme", "expire_in": "8760h"}`, "key=key.id"},
	{"list-keys", "", "", ""},
	{"revoke-key", "$key", "", ""},

	{"apply-policy", "", `{"text": "kinds:\n  mail:\n    max_attempts: 1\n", "reason": "a mail is sent once"}`, ""},
	{"get-policy", "", "", ""},
	{"explain-policy", "", "kind=mail&code=TIMEOUT", ""},
	{"set-schedule", "daily", `{"cron": "0 9 * * 1-5", "zone": "Europe/Berlin", "draft": {"kind": "report", "queue": "reports"}}`, ""},
	{"get-schedule", "daily", "", ""},
	{"list-schedules", "", "next=2", ""},
	{"pause-schedule", "daily", `{"for": "2h", "reason": "the partner moves"}`, ""},
	{"resume-schedule", "daily", `{"reason": "the partner has moved"}`, ""},
	{"run-schedule", "daily", `{"reason": "the report of today is missing"}`, ""},
	{"remove-schedule", "daily", "", ""},
	{"subscribe", "", `{"name": "alarm", "sink": "webhook", "target": "https://example.com/hook", "events": ["job.failed", "breaker.*"], "secrets": ["alarm"]}`, "subscription=id"},
	{"get-subscription", "$subscription", "", ""},
	{"list-subscriptions", "", "", ""},
	{"resubscribe", "$subscription", `{"name": "alarm", "sink": "webhook", "target": "https://example.org/hook", "events": ["job.failed"], "secrets": ["alarm"]}`, ""},
	{"disable-subscription", "$subscription", `{"reason": "the receiver is replaced"}`, ""},
	{"enable-subscription", "$subscription", `{"reason": "the receiver is back"}`, ""},
	{"rewind-subscription", "$subscription", `{"after": 0, "reason": "the receiver has lost its data"}`, ""},

	{"report-worker", "w1", `{"queues": ["mails"], "kinds": ["mail"], "depends": {"mail": "gateway"}, "slots": 4, "version": "2.1", "for": "1h"}`, ""},
	{"list-workers", "", "", ""},
	{"enqueue", "", `{"kind": "mail", "args": {"to": "ann@example.com"}, "queue": "mails", "owner": "acme", "unique_key": "welcome/ann"}`, "mail=id"},
	{"enqueue-bulk", "", `[{"kind": "mail", "args": {"to": "bob@example.com"}, "queue": "mails"}, {"kind": "mail", "args": {"to": "cyd@example.com"}, "queue": "mails"}]`, ""},
	{"make-group", "", `{"name": "newsletter", "then": [{"on": "ready", "draft": {"kind": "report"}}]}`, "group=id"},
	{"enqueue", "", `{"kind": "mail", "args": {"to": "dan@example.com"}, "queue": "letters", "group": "$group"}`, "dan=id"},
	{"seal-group", "$group", `{"reason": "all members are enqueued"}`, ""},
	{"get-group", "$group", "", ""},
	{"get-group-graph", "$group", "", ""},
	{"list-groups", "", "", ""},

	{"await", "", `{"queues": ["mails"], "patience": "30s"}`, ""},
	{"claim", "", `{"worker": "w1", "queues": ["mails"], "kinds": ["mail"], "limit": 2, "lease": "30s"}`, "batch=leases.0.batch,first=leases.0.id,second=leases.1.id"},
	{"renew", "", `{"renewals": [{"batch": "$batch", "running": ["$first", "$second"]}], "lease": "30s"}`, ""},
	{"note", "", `{"notes": [{"batch": "$batch", "job": "$first", "token": 1, "progress": {"percent": 50, "note": "half of the pages"}, "checkpoint": {"page": 7}}]}`, ""},
	{"list-stuck", "", "", ""},
	{"process-stuck", "", `{"reason": "a machine was lost"}`, ""},
	{"report", "", `{"outcomes": [{"batch": "$batch", "job": "$first", "token": 1, "outcome": "failed", "message": "the gateway is unavailable", "http_status": 503, "permanent": true, "took": "1.5s"}]}`, ""},
	{"settle", "", `{"settlements": [{"batch": "$batch", "job": "$second", "token": 1, "to": "complete", "took": "2s", "result": {"pages": 7}, "queue": "mails"}]}`, ""},
	{"claim", "", `{"worker": "w1", "queues": ["letters"], "lease": "30s"}`, "batch=leases.0.batch"},
	{"report", "", `{"outcomes": [{"batch": "$batch", "job": "$dan", "token": 1, "outcome": "failed", "message": "no such mailbox", "code": "NOT_FOUND"}]}`, ""},

	{"get-job", "$first", "", ""},
	{"explain-job", "$first", "", ""},
	{"get-history", "$first", "", ""},
	{"get-story", "$first", "", ""},
	{"store-apply", "", `{"artifacts": [{"job": "$first", "name": "letter.pdf", "ref": "letters/7", "expire_in": "24h", "created_at": "2026-01-02T03:04:05Z"}]}`, ""},
	{"get-artifacts", "$first", "", ""},
	{"list-jobs", "", "state=failed&limit=1", ""},
	{"list-dead-letters", "", "limit=1", ""},
	{"list-errors", "", "", "fingerprint=errors.0.fingerprint"},
	{"get-error", "$fingerprint", "", ""},
	{"list-error-trends", "", "within=1h&fingerprint=$fingerprint", ""},
	{"triage-error", "$fingerprint", `{"status": "ignored", "for": "24h", "reason": "known, fixed tomorrow"}`, ""},
	{"preview-redrive", "", `{"filter": {"queue": "mails"}, "canary": 10, "per_second": 20}`, ""},
	{"start-redrive", "", `{"filter": {"queue": "mails"}, "canary": 10, "per_second": 20, "reason": "the gateway is repaired"}`, "redrive=id"},
	{"pause-redrive", "$redrive", `{"reason": "the gateway is slow"}`, ""},
	{"get-redrive", "$redrive", "", ""},
	{"list-redrives", "", "", ""},
	{"resume-redrive", "$redrive", `{"reason": "the gateway is fast again"}`, ""},
	{"cancel-redrive", "$redrive", `{"reason": "the rest is sent by hand"}`, ""},
	{"edit-job", "$first", `{"args": {"to": "ann@example.org"}, "reason": "a new address"}`, ""},
	{"retry-job", "$first", `{"reason": "the mail server is back"}`, ""},
	{"cancel-job", "$first", `{"reason": "the customer withdrew the order"}`, ""},
	{"retry-group", "$group", `{"reason": "the mailbox exists now"}`, ""},
	{"cancel-group", "$group", `{"reason": "the newsletter is not sent"}`, ""},

	{"place-hold", "", `{"dependency": "gateway", "for": "15m", "reason": "maintenance"}`, ""},
	{"list-holds", "", "", ""},
	{"list-held-lines", "", "", ""},
	{"lift-hold", "", `{"dependency": "gateway"}`, ""},
	{"pause-queue", "mails", `{"for": "1h", "reason": "too much at once"}`, ""},
	{"list-queues", "", "", ""},
	{"resume-queue", "mails", `{"reason": "the backlog is gone"}`, ""},
	{"set-share", "acme", `{"weight": 3, "reason": "a large customer"}`, ""},
	{"list-shares", "", "", ""},
	{"force-breaker", "gateway", `{"open": true, "reason": "maintenance"}`, ""},
	{"get-breaker", "gateway", "", ""},
	{"list-breakers", "", "", ""},
	{"auto-breaker", "gateway", `{"reason": "maintenance is over"}`, ""},
	{"open-breaker", "gateway", `{"reason": "the gateway answers wrongly"}`, ""},
	{"close-breaker", "gateway", `{"reason": "the gateway is repaired"}`, ""},
	{"list-duties", "", "", ""},
	{"pause-duty", "artifacts", `{"for": "10m", "reason": "the database is moved"}`, ""},
	{"resume-duty", "artifacts", `{"reason": "the database has moved"}`, ""},
	{"run-duty", "artifacts", `{"reason": "the disk is small"}`, ""},

	{"make-group", "", `{"name": "pages"}`, "pages=id"},
	{"enqueue", "", `{"kind": "fetch", "queue": "pages", "group": "$pages", "step": "fetch"}`, "fetch=id"},
	{"enqueue", "", `{"kind": "parse", "queue": "pages", "group": "$pages", "step": "parse", "after": ["$fetch"]}`, "parse=id"},
	{"claim", "", `{"worker": "w1", "queues": ["pages"]}`, "batch=leases.0.batch"},
	{"settle", "", `{"settlements": [{"batch": "$batch", "job": "$fetch", "token": 1, "to": "complete", "took": "2s", "result": {"pages": 7}, "queue": "pages"}]}`, ""},
	{"store-sequence", "", `{"limit": 10}`, ""},
	{"store-advance-groups", "", `{"limit": 10}`, ""},
	{"claim", "", `{"worker": "w1", "queues": ["pages"]}`, "batch=leases.0.batch"},
	{"upstreams", "", `{"batch": "$batch", "job": "$parse", "token": 1}`, ""},

	{"enqueue", "", `{"kind": "letter", "args": {"to": "eve@example.com"}, "queue": "wrong", "max_attempts": 1}`, "eve=id"},
	{"claim", "", `{"worker": "w1", "queues": ["wrong"]}`, "batch=leases.0.batch"},
	{"report", "", `{"outcomes": [{"batch": "$batch", "job": "$eve", "token": 1, "outcome": "failed", "message": "no such mailbox", "code": "NOT_FOUND"}]}`, ""},
	{"store-sequence", "", `{"limit": 10}`, ""},
	{"store-redriven", "", `{"id": "$redrive"}`, ""},
	{"store-redrive", "", `{"id": "$redrive", "jobs": ["$eve"], "actor": "ann", "reason": "the mailbox exists now"}`, ""},
	{"claim", "", `{"worker": "w1", "queues": ["wrong"]}`, "batch=leases.0.batch"},
	{"settle", "", `{"settlements": [{"batch": "$batch", "job": "$eve", "token": 2, "to": "failed", "charge": "failure", "limit": 1, "failure": {"code": "NOT_FOUND", "category": "input", "message": "There is no such mailbox.", "fingerprint": "f1"}}]}`, ""},
	{"store-edit", "", `{"job": "$eve", "priority": 2, "actor": "ann", "reason": "it can wait"}`, ""},
	{"store-retry", "", `{"job": "$eve", "actor": "ann", "reason": "the mailbox exists now"}`, ""},
	{"store-cancel", "", `{"job": "$eve", "actor": "ann", "reason": "sent by hand"}`, ""},
	{"enqueue", "", `{"kind": "letter", "args": {"to": "fay@example.com"}, "queue": "lost", "max_attempts": 1}`, "fay=id"},
	{"claim", "", `{"worker": "w1", "queues": ["lost"]}`, "batch=leases.0.batch"},
	{"report", "", `{"outcomes": [{"batch": "$batch", "job": "$fay", "token": 1, "outcome": "failed", "message": "no such mailbox", "code": "NOT_FOUND"}]}`, ""},
	{"store-discard", "", `{"job": "$fay", "actor": "ann", "reason": "sent by hand"}`, ""},
	{"store-pause", "", `{"queue": "mails", "for": "1h", "actor": "ann", "reason": "too much at once", "since": "0001-01-01T00:00:00Z"}`, ""},
	{"store-holds", "", `{}`, ""},
	{"store-held-lines", "", `{"limit": 100}`, ""},
	{"store-count-held", "", `{"queue": "mails", "actor": "ann", "since": "0001-01-01T00:00:00Z"}`, ""},
	{"store-resume", "", `{"queue": "mails", "actor": "ann", "since": "0001-01-01T00:00:00Z"}`, ""},
	{"store-triage", "", `{"fingerprint": "$fingerprint", "status": "acknowledged", "actor": "ann"}`, ""},
	{"store-create-group", "", `{"name": "invoices"}`, "invoices=id"},
	{"store-seal-group", "", `{"id": "$invoices"}`, ""},
	{"store-group", "", `{"id": "$group"}`, ""},
	{"store-group-graph", "", `{"id": "$group"}`, ""},
	{"store-groups", "", `{"limit": 1}`, ""},
	{"store-create-group", "", `{"name": "reminders"}`, "reminders=id"},
	{"enqueue", "", `{"kind": "letter", "args": {"to": "gus@example.com"}, "queue": "reminders", "max_attempts": 1, "group": "$reminders"}`, "gus=id"},
	{"store-seal-group", "", `{"id": "$reminders"}`, ""},
	{"claim", "", `{"worker": "w1", "queues": ["reminders"]}`, "batch=leases.0.batch"},
	{"report", "", `{"outcomes": [{"batch": "$batch", "job": "$gus", "token": 1, "outcome": "failed", "message": "no such mailbox", "code": "NOT_FOUND"}]}`, ""},
	{"store-retry-group", "", `{"group": "$reminders", "actor": "ann", "reason": "the mailbox exists now"}`, ""},
	{"store-cancel-group", "", `{"group": "$reminders", "actor": "ann", "reason": "not needed any more"}`, ""},
	{"store-advance-groups", "", `{"limit": 10}`, ""},
	{"store-job", "", `{"id": "$first"}`, ""},
	{"store-jobs", "", `{"state": "failed", "limit": 1}`, ""},
	{"store-history", "", `{"id": "$second"}`, ""},
	{"store-ahead", "", `{"id": "$second"}`, ""},
	{"store-workers", "", `{}`, ""},
	{"store-counts", "", `{}`, ""},
	{"store-count", "", `{"filter": {"state": "failed"}, "most": 1000}`, ""},
	{"store-depths", "", `{}`, ""},
	{"store-check-integrity", "", `{}`, ""},
	{"store-error-groups", "", `{"limit": 1}`, ""},
	{"store-error-trends", "", `{"fingerprints": ["$fingerprint"], "within": "1h", "step": "5m"}`, ""},
	{"store-trends", "", `{"within": "1h", "step": "5m"}`, ""},
	{"store-retry-stats", "", `{"within": "24h"}`, ""},
	{"store-events", "", `{"subject": "breaker/gateway", "limit": 1}`, ""},
	{"store-feed", "", `{"after": 0, "limit": 2}`, ""},
	{"store-records", "", `{"namespace": "share"}`, ""},
	{"store-artifacts", "", `{"job": "$first"}`, ""},
	{"store-promote", "", `{"limit": 100}`, ""},
	{"store-reclaim", "", `{"worker": "w1", "queues": [], "limit": 10, "start": 10, "lease": "30s"}`, ""},
	{"store-expire", "", `{"worker": "w1", "queues": [], "limit": 10, "start": 10, "lease": "30s"}`, ""},
	{"store-missed-deadlines", "", `{"limit": 10}`, ""},
	{"apply-retention", "", `{"rules": [{"name": "complete", "state": "complete", "for": "1ns"}, {"name": "rest", "for": "forever"}], "reason": "the disk is small"}`, ""},
	{"get-retention", "", "", ""},
	{"store-purge", "", `{"rules": [{"name": "complete", "state": "complete", "for": "1ns"}], "scan": 100}`, ""},
	{"store-purge-counts", "", `{}`, ""},
	{"store-tombstones", "", `{"limit": 1}`, ""},
	{"list-tombstones", "", "limit=1", ""},
	{"reset-retention", "", "", ""},
	{"store-delete-history", "", `{"history": "feed", "older": "168h", "limit": 100}`, ""},

	{"get-audit", "", "limit=2", ""},
	{"get-feed", "", "limit=2", ""},
	{"get-latest", "", "limit=2", ""},
	{"get-analytics", "", "within=24h", ""},
	{"get-stats", "", "", ""},
	{"get-count", "", "state=failed", ""},
	{"list-depths", "", "", ""},
	{"list-trends", "", "within=1h", ""},
	{"list-codes", "", "", ""},
	{"get-doctor", "", "", ""},
	{"list-deliveries", "", "limit=1", "delivery=deliveries.0.id"},
	{"get-delivery", "$delivery", "", ""},
	{"resend", "$delivery", `{"reason": "the receiver has lost it"}`, ""},
	{"enqueue", "", `{"kind": "letter", "queue": "letters"}`, "hal=id"},
	{"claim", "", `{"worker": "w1", "queues": ["letters"], "kinds": ["letter"]}`, "batch=leases.0.batch"},
	{"report", "", `{"outcomes": [{"batch": "$batch", "job": "$hal", "token": 1, "outcome": "failed", "message": "no such mailbox", "code": "NOT_FOUND"}]}`, ""},
	{"discard-job", "$hal", `{"reason": "sent by hand"}`, ""},
	{"make-group", "", `{"name": "report of May"}`, "flow=id"},
	{"enqueue", "", `{"kind": "load", "queue": "flow", "group": "$flow", "step": "load"}`, "load=id"},
	{"enqueue", "", `{"kind": "render", "queue": "flow", "group": "$flow", "step": "render", "after": ["$load"]}`, "render=id"},
	{"claim", "", `{"worker": "w1", "queues": ["flow"]}`, "batch=leases.0.batch"},
	{"settle", "", `{"settlements": [{"batch": "$batch", "job": "$load", "token": 1, "to": "complete", "took": "2s", "result": {"rows": 12}, "queue": "flow"}]}`, ""},
	{"store-advance-groups", "", `{"limit": 10}`, ""},
	{"claim", "", `{"worker": "w1", "queues": ["flow"]}`, "batch=leases.0.batch"},
	{"upstreams", "", `{"batch": "$batch", "job": "$render", "token": 1, "step": "load"}`, ""},
	{"unsubscribe", "$subscription", "", ""},
	{"remove-policy", "", "", ""},
}

const recorded = "testdata/examples.json"

// An exchange is the body of a request and of its answer.
type exchange struct {
	In  json.RawMessage `json:"in,omitempty"`
	Out json.RawMessage `json:"out,omitempty"`
}

// touring is a server on a store of its own, with an engine that decides about reports and leaves the rest to the tour.
func touring(t *testing.T) *server.Server {
	t.Helper()
	s, err := anystore.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	deliver(t, s)
	e, err := engine.New(s, engine.Config{Name: "server", Log: slog.New(slog.DiscardHandler),
		DisableDuties: []string{"redrive", "group", "schedule", "reclaim", "expire", "promote", "sequence", "retention"}})
	if err != nil {
		t.Fatal(err)
	}
	running := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { running <- e.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-running; err != nil {
			t.Error(err)
		}
	})
	srv, err := server.New(server.Config{Store: s, Operator: ops.New(s, ops.Config{}), Settler: e, Open: true, IgnoreKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

// deliver makes a delivery that has failed.
func deliver(t *testing.T, s store.Store) {
	t.Helper()
	ctx, owner := t.Context(), subscription.Owner(holdfast.NewID())
	err := s.Apply(ctx, store.Change{Deliver: []holdfast.Draft{{Kind: "holdfast.webhook", Queue: subscription.Queue, Owner: owner, Args: []byte(`{"from": 1, "to": 1}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	leases, err := s.Claim(ctx, store.Claim{Worker: "deliveries", Queues: []string{subscription.Queue}, Limit: 1, Start: 1, Lease: time.Hour})
	if err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	answers, err := s.Settle(ctx, []store.Settlement{{
		Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Failed, Charge: store.ChargeFailure, Limit: 10, Took: time.Second,
		Failure: &holdfast.Failure{Code: "HTTP_5XX", Category: "dependency", Message: "The receiver answered 503.", Fingerprint: "f0"},
	}})
	if err = errors.Join(append(answers, err)...); err != nil {
		t.Fatal(err)
	}
}

// A traveller makes the steps of the tour.
type traveller struct {
	*testing.T
	web   *httptest.Server
	names map[string]string
	seen  map[string]exchange
}

func (v *traveller) fill(text string) string {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(v.names))) { // a longer name before its beginning
		text = strings.ReplaceAll(text, "$"+name, v.names[name])
	}
	return text
}

// take makes one step. The first exchange of an operation is its example.
func (v *traveller) take(o api.Operation, s step) {
	v.Helper()
	path, with := o.Path, v.fill(s.with)
	if at := strings.IndexByte(path, '{'); at >= 0 {
		end := at + strings.IndexByte(path[at:], '}') + 1
		path = path[:at] + url.PathEscape(v.fill(s.of)) + path[end:]
	}
	var body io.Reader
	switch {
	case strings.HasPrefix(with, "{") || strings.HasPrefix(with, "["):
		body = strings.NewReader(with)
	case with != "":
		path += "?" + with
	}
	r, err := http.NewRequestWithContext(v.Context(), o.Method, v.web.URL+api.Prefix+path, body)
	if err != nil {
		v.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := v.web.Client().Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 {
		v.Errorf("%s %s %s: %s %s (%v)", o.Name, path, with, response.Status, answer, err)
		return
	}
	if _, is := v.seen[o.Name]; !is {
		e := exchange{Out: bytes.TrimSpace(answer)}
		if body != nil {
			e.In = json.RawMessage(with)
		}
		v.seen[o.Name] = e
	}
	for _, keep := range strings.Split(s.save, ",") {
		if name, field, ok := strings.Cut(keep, "="); ok {
			v.names[name] = fieldOf(v.T, o.Name, answer, field)
		}
	}
}

// fieldOf returns a field of JSON, such as leases.0.id.
func fieldOf(t *testing.T, name string, text []byte, field string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v: %s", name, err, text)
	}
	for _, word := range strings.Split(field, ".") {
		switch of := value.(type) {
		case map[string]any:
			value = of[word]
		case []any:
			if n, err := strconv.Atoi(word); err == nil && n < len(of) {
				value = of[n]
			}
		}
	}
	found, ok := value.(string)
	if !ok {
		t.Fatalf("%s: no %s in %s", name, field, text)
	}
	return found
}

var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?Z`)
	anyKey  = regexp.MustCompile(`hf_[0-9a-f]{12}_[0-9a-f]{64}_[0-9a-f]{8}`)
	anyHost = regexp.MustCompile(`(server)/[0-9]+/[0-9a-f]+`)
)

// steady replaces what differs in each run, so that a new recording differs from the last one only where the API has changed.
func steady(text string, ids map[string]string) string {
	text = anyID.ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("01890a5d-ac96-774b-bcce-%012x", 0xb302099a8000+len(ids))
		}
		return ids[id]
	})
	text = anyTime.ReplaceAllString(text, "2026-01-02T03:04:05Z")
	text = anyKey.ReplaceAllString(text, "hf_<id>_<secret>_<check>")
	return anyHost.ReplaceAllString(text, "$1/1/1")
}

// shortened keeps the first two elements of every list: an example shows what an answer looks like, not how much there is of it.
func shortened(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out strings.Builder
	if err := copyValue(d, &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out.String()
}

func copyValue(d *json.Decoder, out *strings.Builder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	end := map[any]string{json.Delim('{'): "}", json.Delim('['): "]"}[token]
	if end == "" {
		return writeScalar(out, token)
	}
	fmt.Fprint(out, token)
	for n := 0; d.More(); n++ {
		to := out
		if end == "]" && n >= 2 {
			to = &strings.Builder{}
		} else if n > 0 {
			out.WriteString(", ")
		}
		if end == "}" {
			name, err := d.Token()
			if err = errors.Join(err, writeScalar(to, name)); err != nil {
				return err
			}
			to.WriteString(": ")
		}
		if err := copyValue(d, to); err != nil {
			return err
		}
	}
	out.WriteString(end)
	_, err = d.Token()
	return err
}

func writeScalar(out *strings.Builder, value any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	out.Write(bytes.TrimSpace(text.Bytes()))
	return err
}

// record makes the tour and returns what it saw.
func record(t *testing.T) map[string]exchange {
	t.Helper()
	srv := touring(t)
	web := httptest.NewServer(srv)
	defer web.Close()
	v := &traveller{T: t, web: web, names: map[string]string{}, seen: map[string]exchange{}}
	for _, s := range tour {
		o, ok := operationOf(srv, s.name)
		if !ok {
			t.Errorf("the tour calls %s, which is no operation", s.name)
			continue
		}
		v.take(o, s)
	}
	return v.seen
}

// keep makes the recording the examples of the document.
func keep(t *testing.T, seen map[string]exchange) {
	t.Helper()
	ids, all := map[string]string{}, map[string]exchange{}
	for _, s := range tour {
		e := seen[s.name]
		all[s.name] = exchange{json.RawMessage(steady(shortened(t, string(e.In)), ids)), json.RawMessage(steady(shortened(t, string(e.Out)), ids))}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(recorded), 0o755), os.WriteFile(recorded, append(text, '\n'), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// exchanges are the recorded requests and answers, by operation.
var exchanges = sync.OnceValues(func() (all map[string]exchange, err error) {
	text, err := os.ReadFile(recorded)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
})

func TestTheTourCallsEveryOperation(t *testing.T) {
	seen := record(t)
	if *update && !t.Failed() {
		keep(t, seen)
	}
	srv := touring(t)
	for _, o := range srv.Operations() {
		if _, called := seen[o.Name]; !called && o.Name != "follow-events" {
			t.Errorf("the tour does not call %s: add a step, and record with go test ./openapi -run TheTour -update", o.Name)
		}
	}
}
