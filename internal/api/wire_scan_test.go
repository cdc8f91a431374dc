package api

import (
	stdjson "encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
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

func FuzzCompactJSON(f *testing.F) {
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
	})
}
