package console

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func TestAnEditBecomesAPatchThatKeepsTheRestUnchanged(t *testing.T) {
	for _, c := range []struct{ was, is, patch, after string }{
		{`{"n":1.00,"id":9007199254740993}`, `{"n": 1.00, "id": 9007199254740993}`, ``, `{"n":1.00,"id":9007199254740993}`},
		{`{"b":1,"a":2}`, `{"a":2,"b":1}`, ``, `{"b":1,"a":2}`},
		{`{"n":1.0}`, `{"n":1}`, `{"n":1}`, `{"n":1}`},
		{`{"a":{"x":1,"y":2},"c":3}`, `{"a":{"x":1,"z":4},"c":3}`, `{"a":{"y":null,"z":4}}`, `{"a":{"x":1,"z":4},"c":3}`},
		{`{"":"empty","\u0061":1}`, `{"":"other","a":1}`, `{"":"other"}`, `{"":"other","\u0061":1}`},
		{`{"l":[1,null]}`, `{"l":[null]}`, `{"l":[null]}`, `{"l":[null]}`},
		{`{"kept":null,"a":1}`, `{"kept":null,"a":2}`, `{"a":2}`, `{"kept":null,"a":2}`},
		{`"text"`, `{}`, `{}`, `{}`},
		{`{"a":1}`, `[1]`, `[1]`, `[1]`},
	} {
		got, err := mergePatchOf(json.RawMessage(c.was), json.RawMessage(c.is), "args")
		if err != nil || string(got.patch) != c.patch || string(got.after) != c.after {
			t.Errorf("%s to %s: patch %s, after %s, %v", c.was, c.is, got.patch, got.after, err)
		}
	}
	for _, c := range [][2]string{{`{"a":1}`, `{"a":null}`}, {`{}`, `{"a":null}`}, {`1`, `{"a":{"b":null}}`}, {`{}`, `{"a":1,"a":2}`}} {
		if _, err := mergePatchOf(json.RawMessage(c[0]), json.RawMessage(c[1]), "args"); err == nil {
			t.Errorf("%s to %s cannot be expressed as a patch, and was not refused", c[0], c[1])
		}
	}
	if _, err := readJSON("{\n\"a\": 1,\n}"); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("a comma too many: %v", err)
	}
}

func TestADifferenceShowsRemovedAndAddedLines(t *testing.T) {
	var text strings.Builder
	for _, line := range difference(strings.Repeat("same\n", 20)+"old\nend", strings.Repeat("same\n", 20)+"new\nmore\nend") {
		text.WriteString(line.Sign + line.Text + "|")
	}
	if want := "17 lines without a change| same| same| same|-old|+new|+more| end|"; text.String() != want {
		t.Errorf("the difference is %s", text.String())
	}
}

func TestAWaterfallShowsHowAJobSpentItsTime(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }
	h := store.History{
		Job: holdfast.Job{CreatedAt: at(0), State: holdfast.Complete, Token: 3, Generation: 2, StartedAt: at(90010), FinishedAt: at(90012), AsOf: at(99999)},
		Attempts: []store.Attempt{
			{Token: 1, Generation: 1, StartedAt: at(1), EndedAt: at(3), To: holdfast.Queued, Charge: store.ChargeFailure, DueAt: at(8), Failure: &holdfast.Failure{Code: "TIMEOUT"}},
			{Token: 1, Generation: 1, StartedAt: at(1), EndedAt: at(4), To: holdfast.Complete, Late: true},
			{Token: 2, Generation: 1, StartedAt: at(20), EndedAt: at(19), To: holdfast.Failed, Charge: store.ChargeFailure}, // a clock stepped back
		},
		Events: []store.Event{{Name: "manual retry", At: at(90000), Token: 2, Generation: 2, Actor: "ann"}},
	}
	w := buildWaterfall(h, ops.Story(h), []segment{{from: at(10), to: at(15), tone: "held", words: "held by breaker gateway"}})
	var got []string
	for _, row := range w.Rows {
		got = append(got, row.Name+": "+row.Text)
		if strings.Contains(string(row.Picture), "-") && strings.Contains(string(row.Picture), `width="-`) {
			t.Errorf("%s is drawn backwards: %s", row.Name, row.Picture)
		}
	}
	want := []string{
		"Attempt 1: waited 1.0 s · ran 2.0 s · TIMEOUT", "Attempt 2: backoff 5.0 s · waited 7.0 s · held by breaker gateway 5.0 s · failed",
		"Generation 2: manual retry by ann after 1 d", "Attempt 1: waited 10 s · ran 2.0 s · complete",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rows:\n%s", strings.Join(got, "\n"))
	}
	if !w.Short || len(w.Marks) != labelCount+1 {
		t.Errorf("a day between seconds is not drawn shorter: %+v", w.Marks)
	}
}
