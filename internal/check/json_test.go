package check

import (
	"encoding/json"
	"strings"
	"testing"
)

var samples = []string{
	``, ` `, `null`, `nul`, `nulll`, `true`, `false`, `[]`, `[ ]`, `{}`, `{ }`, `[1,2]`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1}`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{"a":}`, `{"a" : [ {"b":null} , 2 ] }`,
	`"x"`, `"x`, `"\n"`, "\"\n\"", `"\u00e9"`, `"\u00g9"`, `"\u00"`, `"\x"`, `"\`, "\"\xff\"", "\"\x7f\"", `1`, `-1`, `-`, `+1`, `01`, `0`, `-0`, `0.5`, `.5`, `1.`, `1.e3`, `1e3`, `1E+3`, `1e`, `1e-`, `1e5.5`,
	`0e0`, `00`, `0x1`, ` 1 `, `1 1`, `]`, `}`, `[}`, `{]`, `"a" "b"`, `[[[[]]]]`, `{"a":{"b":{"c":[]}}}`, "\u00a01", `NaN`, `Infinity`, `"@"`, `"\u@000"`, `"\uAbCd"`, "\ufeff1",
}

func TestJSONIsWhatTheStandardLibrarySays(t *testing.T) {
	deep := []string{strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001)}
	for _, text := range append(deep, samples...) {
		if got, want := ValidJSON([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%.60q: %v, the standard library says %v", text, got, want)
		}
	}
}

func FuzzJSONIsWhatTheStandardLibrarySays(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if ValidJSON(text) != json.Valid(text) {
			t.Errorf("%q: %v, the standard library says %v", text, ValidJSON(text), json.Valid(text))
		}
	})
}
