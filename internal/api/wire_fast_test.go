package api

import (
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// texts are valid and invalid JSON of many forms.
var texts = []string{
	`{}`, `[]`, `""`, `0`, `-0`, `-1`, `01`, `1.5`, `1.`, `.5`, `1e9`, `1e`, `1E+9`, `1e-9`, `1e+-9`, `true`, `tru`, `null`, `nul`, ``, ` `, `{"a":1}`, `{"a":1,"a":2}`, `{"a":1,}`, `{"a"}`,
	`{a:1}`, `{"a":{"a":[1,2,{"a":null}]}}`, `[1,]`, `[,1]`, `[1`, `{"a":1`, `"a`, `"a\"b"`, `"a\`, `"\x"`, `"\u0041"`, `"\ud800"`, `"ü€"`, "\"\xff\"", "\"\xc3\"", "\"a\nb\"", `{"\u0061":1,"a":2}`, `{"ü":1,"ü":2}`,
	`{"a": 1}`, ` {"a":1}`, `{"a":1} `, "[1,\n2]", `[1]]`, `{"a":1}}`, `1,2`, `{"$text":"x"}`, `"\\"`, `"\\\"\\"`, `["]","}","\\\"]"]`, `["a]`, strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat("[", 13) + strings.Repeat("]", 13),
	"\"\x00\"", `"\/\b\f\n\r\t"`, `1 2`, `"a" "b"`, `--1`, `+1`, `NaN`, `{"a":01}`, "\ufeff1", `{"a":1;"b":2}`, `{1:2}`, `[{}`, `{[]}`,
}

func TestCompactJSONIsValidForTheFullParser(t *testing.T) {
	for _, text := range texts {
		raw := jsontext.Value(text)
		if compactJSON(raw) && !raw.IsValid() {
			t.Errorf("%q is not valid", text)
		}
		if validJSON(raw) != raw.IsValid() {
			t.Errorf("validJSON(%q) = %v", text, validJSON(raw))
		}
		compact := raw.Clone()
		if compactJSON(raw) && (compact.Compact() != nil || string(compact) != text) {
			t.Errorf("%q is not compact", text)
		}
	}
	for _, text := range []string{`{"text":"holdfast","n":[1,2.5e3,{"ok":true}],"ü":null}`, `"plain"`, `12`} {
		if !compactJSON([]byte(text)) {
			t.Errorf("%s is not recognised as compact", text)
		}
	}
}

func FuzzCompactJSONAndAfterValue(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw := jsontext.Value(text)
		if validJSON(raw) != raw.IsValid() {
			t.Fatalf("validJSON(%q) = %v", text, validJSON(raw))
		}
		if string(Unmark(Mark(stdjson.RawMessage(text)))) != text && raw.IsValid() {
			t.Fatalf("%q changed", text)
		}
		if raw.IsValid() && len(text) > 0 && text[0] > ' ' && text[len(text)-1] > ' ' {
			if n := afterValue([]byte(text + `,"more"`)); n != len(text) {
				t.Fatalf("%q ends at %d", text, n)
			}
		}
		agree(t, `[{"kind":"mail","args":`+text+`}]`)
		agree(t, text)
	})
}

// agree compares the fast reader with the JSON library, for drafts and settlements: where the fast reader succeeds, both read the same.
func agree(t *testing.T, text string) {
	t.Helper()
	var fast, slow []holdfast.Draft
	if decodeFast([]byte(text), &fast) {
		if err := json.Unmarshal([]byte(text), &slow, options); err != nil || !reflect.DeepEqual(fast, slow) {
			t.Fatalf("%s\nfast reader  %+v\nJSON library %+v, %v", text, fast, slow, err)
		}
	}
	var settled, known settlements
	if decodeFast([]byte(text), &settled) {
		if err := json.Unmarshal([]byte(text), &known, options); err != nil || !reflect.DeepEqual(settled, known) {
			t.Fatalf("%s\nfast reader  %+v\nJSON library %+v, %v", text, settled, known, err)
		}
	}
}

func TestTheFastReaderAgreesWithTheLibraryOrGivesUp(t *testing.T) {
	id := holdfast.NewID().String()
	drafts := []string{
		`[]`, `[{"kind":"a"}]`, `[{"kind":"a"},{"kind":"a","queue":"q"}]`, `[{"kind":"a","colour":1}]`, `[{"kind":"a","kind":"b"}]`, `[{"queue":"q","kind":"a"}]`, `[{"kind":"a",}]`, `[{"kind":"a"},]`, `[{"kind":"a"}`,
		`[{"kind":"a"}]x`, `[{"kind":"a"} ]`, `[ {"kind":"a"}]`, `[{"kind":"a","args":{"x":1,"x":2}}]`, `[{"kind":"a","args": 1}]`, `[{"kind":"a","args":1 }]`, `[{"kind":"a","args":}]`, `[{"kind":"a","priority":40000}]`,
		`[{"kind":"a","priority":-0}]`, `[{"kind":"a","priority":01}]`, `[{"kind":"a","priority":1.5}]`, `[{"kind":"a","max_attempts":99999999999999999999}]`, `[{"kind":"a","delay":"soon"}]`, `[{"kind":"a","delay":"3µs"}]`,
		`[{"kind":"a\u0062"}]`, "[{\"kind\":\"\xff\"}]", `[{"kind":"ü"}]`, `[{"id":"` + id + `","kind":"a"}]`, `[{"id":"` + strings.ToUpper(id) + `","kind":"a"}]`, `[{"id":"00000000-0000-0000-0000-000000000000","kind":"a"}]`,
		`[{"id":"` + id[:35] + `g","kind":"a"}]`, `[{"id":"` + id + `"}]`, `[null]`, `[{}]`, `{}`, `null`, `[{"kind":"a","tags":["x"]},{"kind":"b"}]`,
		`{"settlements":[]}`, `{"settlements":[{"batch":"` + id + `","job":"` + id + `","token":1,"to":"complete","took":"1.5µs","result":{"a":[1]}}]}`, `{"settlements":[{"batch":"` + id + `"}],"more":1}`,
		`{"settlements":[{"batch":"` + id + `","job":"` + id + `","token":1,"to":"failed","failure":{"code":"C","category":"input","message":"m"},"why":"x"}]}`,
	}
	for _, text := range drafts {
		agree(t, text)
	}
}

// fullSettlement is a settlement with every field set.
func fullSettlement() Settlement {
	return Settlement{
		Batch: holdfast.NewID(), Job: holdfast.NewID(), Token: 3, To: holdfast.Queued, Delay: time.Second, Charge: store.ChargeFailure, Limit: 5, StartWithin: time.Minute, Version: "v1 \"ü\"", Queue: "mails \"ü\"",
		Took: 1500 * time.Nanosecond, Result: []byte(`{"a":1}`), Failure: &holdfast.Failure{Code: "C", Category: "input", Message: "m", Context: map[string]string{"a": "b"}}, Why: "so\n",
	}
}

func TestTheSettlementCodecAgreesWithTheLibrary(t *testing.T) {
	whole := reflect.ValueOf(fullSettlement())
	all := []Settlement{{}, fullSettlement()}
	for i := range whole.NumField() {
		if whole.Field(i).IsZero() {
			t.Fatalf("the test has nothing to say for %s", whole.Type().Field(i).Name)
		}
		one := Settlement{Batch: holdfast.NewID(), Job: holdfast.NewID()}
		reflect.ValueOf(&one).Elem().Field(i).Set(whole.Field(i))
		all = append(all, one)
	}
	for n := range len(all) + 1 {
		hand, err := Marshal(settlements{all[:n]})
		if err != nil {
			t.Fatal(err)
		}
		typed, err := json.Marshal(settlements{all[:n]}, options, lenient)
		if err != nil || n > 0 && string(hand) != string(typed) {
			t.Fatalf("by hand %s\nby type %s, %v", hand, typed, err)
		}
		var read, known settlements
		if err := Unmarshal(hand, &read); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(hand, &known, options); err != nil || !reflect.DeepEqual(read, known) || n > 0 && !reflect.DeepEqual(read.Settlements, all[:n]) {
			t.Fatalf("%s\nfast reader  %+v\nJSON library %+v, %v", hand, read, known, err)
		}
	}
}

func TestTheAnswersCodecAgreesWithTheLibrary(t *testing.T) {
	lost := ProblemOf(&holdfast.Error{Err: holdfast.ErrLeaseLost, Message: "gone \"ü\""})
	for _, list := range [][]*Problem{{}, {nil}, {nil, nil}, {nil, lost, nil}, {lost}} {
		hand, err := Marshal(Answers{list})
		if err != nil {
			t.Fatal(err)
		}
		typed, err := json.Marshal(struct {
			Answers []*Problem `json:"answers"`
		}{list}, options, lenient)
		if err != nil || string(hand) != string(typed) {
			t.Fatalf("by hand %s\nby type %s, %v", hand, typed, err)
		}
		var read Answers
		if err := UnmarshalLoose(hand, &read); err != nil || !reflect.DeepEqual(read.Answers, list) {
			t.Fatalf("%s became %+v, %v", hand, read, err)
		}
	}
}

func TestLeasesWithRareMembersAreReadBesideOthers(t *testing.T) {
	usual := Lease{Job: holdfast.Job{ID: holdfast.NewID(), Kind: "mail", Queue: "slow", Args: []byte(`{"a":1}`), State: holdfast.Processing, Token: 1, CreatedAt: time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC), AsOf: time.Date(2031, 1, 2, 3, 4, 6, 7000, time.UTC)}, Batch: holdfast.NewID(), Attempt: 1}
	many := []Lease{usual, fullLease(), usual, fullLease(), usual}
	text, err := Marshal(ClaimOut{many})
	if err != nil {
		t.Fatal(err)
	}
	var fast, slow ClaimOut
	if !decodeFast(text, &fast) || !reflect.DeepEqual(fast.Leases, many) {
		t.Fatalf("%s became %+v", text, fast)
	}
	newer := strings.Replace(string(text), `"kind"`, `"colour":"red","kind"`, 1) // as from a newer server
	if err := UnmarshalLoose([]byte(newer), &slow); err != nil || !reflect.DeepEqual(slow.Leases, many) {
		t.Fatalf("%s became %+v, %v", newer, slow, err)
	}
}
