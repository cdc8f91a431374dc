package api

import (
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// full is a draft with every field set.
func full() holdfast.Draft {
	return holdfast.Draft{
		ID: holdfast.NewID(), Kind: "mail", Queue: "slow/eu", Args: []byte(`{"b":1.50,"a":"ü"}`), Priority: -3, Owner: "ac\"me ü", Tags: []string{"x", "y z"},
		Group: holdfast.NewID(), After: []holdfast.ID{holdfast.NewID()}, AfterAll: true, When: []holdfast.Condition{{Step: "check", On: holdfast.OnFailed}}, Step: "load", Dependency: "host", Delay: 90 * time.Second,
		RunAt: time.Date(2031, 1, 2, 3, 4, 5, 6000, time.UTC), ExpireIn: time.Hour, ExpireAt: time.Date(2032, 1, 2, 3, 4, 5, 0, time.UTC),
		RetryWithin: time.Minute, MaxAttempts: 7, UniqueKey: "k", UniqueDone: true, IdempotencyKey: "once", Order: "account-7", OrderHold: true, Replace: &holdfast.Replace{Start: true, MaxAge: time.Minute, Follow: true}, Trace: "00-ab-cd-01",
	}
}

func TestTheDraftCodecAgreesWithTheLibrary(t *testing.T) {
	byType := json.JoinOptions(options, json.WithUnmarshalers(json.JoinUnmarshalers(durationIn, formUnmarshalers)))
	whole := reflect.ValueOf(full())
	for i := range whole.NumField() { // each field alone, and all of them
		d := full()
		field := whole.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if whole.Field(i).IsZero() {
			t.Fatalf("the test has nothing to say for %s", field.Name)
		}
		if field.Name != "Kind" {
			d = holdfast.Draft{Kind: "mail"}
			reflect.ValueOf(&d).Elem().Field(i).Set(whole.Field(i))
		}
		for _, d := range []holdfast.Draft{d, full()} {
			text, err := AppendDraft(nil, &d, d.ID)
			if err != nil {
				t.Fatal(err)
			}
			var hand, typed holdfast.Draft
			if err := Unmarshal(text, &hand); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if err := json.Unmarshal(text, &typed, byType); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if !reflect.DeepEqual(hand, typed) || !reflect.DeepEqual(hand, d) {
				t.Fatalf("%s: %s\nby hand %+v\nby type %+v\nwas     %+v", field.Name, text, hand, typed, d)
			}
		}
	}
}

func TestAnUnknownMemberOfADraftIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		`[{"kind":"a"},{"kind":"a","colour":"red"}]`: "/1",
		`[{"kind":"a","kind":"b"}]`:                  "duplicate",
		`[{"kind":7}]`:                               "/0/kind",
		`[{"kind":"a","delay":5}]`:                   "1m30s",
		`[{"kind":"a","priority":"high"}]`:           "/0/priority",
		`[{"kind":"a","args":{"x":1,"x":2}}]`:        "duplicate",
		`[{"kind":"a","id":"nonsense"}]`:             "nonsense",
		`[{"kind":"a"`:                               "",
		`["mail"]`:                                   "/0",
		`{"kind":"a"}`:                               "",
	} {
		var drafts []holdfast.Draft
		err := Unmarshal([]byte(text), &drafts)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to say %q", text, err, want)
		}
	}
}

func TestJSONArrivesByteForByte(t *testing.T) {
	for _, text := range []string{
		`{}`, ` {} `, `{"a": 1}`, `{"a":1,"a":2}`, `"\ud800"`, `"\u0041"`, `1.50`, `123456789012345678901234567890.5e3`, `null`, `{"$text":"x"}`,
		`{"$text":`, `{"a":`, `"`, strings.Repeat("[", 100) + strings.Repeat("]", 100),
	} {
		raw := stdjson.RawMessage(text)
		if got := Unmark(Mark(raw)); string(got) != text {
			t.Errorf("%s became %s", text, got)
		}
		type holds struct {
			Body stdjson.RawMessage `json:"body"`
		}
		sent, err := Marshal(Exact[holds]{holds{raw}})
		if err != nil {
			t.Fatal(err)
		}
		var got Exact[holds]
		if err := Unmarshal(sent, &got); err != nil || string(got.Value.Body) != text {
			t.Errorf("%s became %s on its way as %s: %v", text, got.Value.Body, sent, err)
		}
	}
	var nothing Exact[store.Record]
	sent, _ := Marshal(nothing)
	if err := Unmarshal(sent, &nothing); err != nil || nothing.Value.Body != nil {
		t.Errorf("nothing became %q: %v", nothing.Value.Body, err)
	}
}

func TestADamagedJobIsShownAsAString(t *testing.T) {
	text, err := Marshal(holdfast.Job{Args: []byte(`{"a":`)})
	if err != nil || !strings.Contains(string(text), `"args":"{\"a\":"`) {
		t.Fatal(string(text), err)
	}
}

func TestReceiptsAreReadAsTheyAreWritten(t *testing.T) {
	for n := range 5 {
		var out BulkOut
		for i := range n {
			out.Receipts = append(out.Receipts, Receipt{holdfast.NewID(), i%2 == 1, i == 3})
		}
		text, _ := Marshal(out)
		got, ok := ReadReceipts(text, n)
		var typed BulkOut
		if err := UnmarshalLoose(text, &typed); err != nil || !ok || len(got) != n || len(typed.Receipts) != n {
			t.Fatal(string(text), got, ok, err)
		}
		for i := range got {
			if got[i] != holdfast.Receipt(out.Receipts[i]) || got[i] != holdfast.Receipt(typed.Receipts[i]) {
				t.Fatal(got, out)
			}
		}
	}
	for _, other := range []string{``, `{"receipts":[`, `{"receipts":[{"id":"x"}]}`, `{ "receipts": [] }`} {
		if _, ok := ReadReceipts([]byte(other), 1); ok {
			t.Error(other)
		}
	}
}

// fullLease is a lease with every field set.
func fullLease() Lease {
	at := time.Date(2031, 1, 2, 3, 4, 5, 6000, time.UTC)
	id := holdfast.NewID()
	return Lease{Job: holdfast.Job{
		ID: id, Kind: "mail", Queue: "slow", Args: []byte(`{"a":1}`), Priority: -2, Owner: "ac\"me", Tags: []string{"x"}, Dependency: "host", Group: id, Step: "load", After: []holdfast.ID{id}, When: []holdfast.Condition{{Job: id, On: holdfast.OnEnded}},
		RetryWithin: time.Minute, MaxAttempts: 3, UniqueKey: "u", IdempotencyKey: "i", Order: "o", OrderHold: true, Trace: "t", CreatedAt: at, RunAt: at, ExpireAt: at, State: holdfast.Processing,
		Waiting: true, DueAt: at, Token: 4, Failures: 1, Crashes: 2, Releases: 3, Generation: 5, Worker: "w", LeaseUntil: at, StartedAt: at, Cancelling: true,
		Progress: &holdfast.Progress{Percent: 5, Note: "n", At: at}, LastFailure: &holdfast.Failure{Code: "C", Category: "input", Message: "m"}, FinishedAt: at,
		Result: []byte(`[1]`), Discarded: true, Upstream: id, Skipped: true, AsOf: at,
	}, Batch: id, Attempt: 7, Since: at, Checkpoint: []byte(`{"at":9}`), Lost: "old", Corrupt: "bad"}
}

func TestTheLeaseCodecAgreesWithTheLibrary(t *testing.T) {
	whole := reflect.ValueOf(fullLease())
	for i := range whole.Field(0).NumField() {
		if whole.Field(0).Field(i).IsZero() {
			t.Fatalf("the test has nothing to say for %s", whole.Field(0).Type().Field(i).Name)
		}
	}
	byType := json.JoinOptions(options, lenient, json.WithUnmarshalers(json.JoinUnmarshalers(durationIn, formUnmarshalers)))
	damaged := fullLease()
	damaged.Args = []byte(`{"a":`)
	for _, l := range []Lease{fullLease(), {}, {Job: holdfast.Job{Kind: "mail", Args: []byte("null")}}, damaged} {
		hand, err := Marshal(ClaimOut{[]Lease{l, l}})
		if err != nil {
			t.Fatal(err)
		}
		typed, err := json.Marshal(struct {
			Leases []Lease `json:"leases"`
		}{[]Lease{l, l}}, byType)
		if err != nil {
			t.Fatal(err)
		}
		var maps [2]map[string]any
		if stdjson.Unmarshal(hand, &maps[0]) != nil || stdjson.Unmarshal(typed, &maps[1]) != nil || len(l.Kind) > 0 && !reflect.DeepEqual(maps[0], maps[1]) {
			t.Errorf("by hand %s\nby type %s", hand, typed)
		}
		var read, reflected ClaimOut
		if err := UnmarshalLoose(hand, &read); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(hand, &reflected, byType); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(read, reflected) || l.Corrupt == "bad" && string(l.Args)[0] == '{' && len(l.Args) == 7 && !reflect.DeepEqual(read.Leases[1], l) {
			t.Errorf("by hand %+v\nby type %+v", read, reflected)
		}
	}
}
