package rule_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfastdev/holdfast/store/internal/rule"
)

func TestAMergePatchChangesWhatItNamesAndNothingElse(t *testing.T) {
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`null`, `{"a":1}`, `{"a":1}`},
		{`{"n": 1.00, "big":12345678901234567890123, "t" : "\u00e9\/"}`, ` { "n2" : 1e0 } `, `{"n":1.00,"big":12345678901234567890123,"t":"\u00e9\/","n2":1e0}`},
		{`{"\u0061":1,"b":2}`, `{"a":3}`, `{"\u0061":3,"b":2}`},
		{`{"a":1,"a":2}`, `{"a":null}`, `{}`},
		{`{}`, `{"a":1,"a":2}`, `{"a":2}`},
		{`{"a,":{"x":[1, 2]}}`, `{}`, `{"a,":{"x":[1, 2]}}`},
	} {
		got := rule.Merge(json.RawMessage(c.target), json.RawMessage(c.patch))
		if string(got) != c.want {
			t.Errorf("%s with %s is %s, not %s", c.target, c.patch, got, c.want)
		}
		if !json.Valid(got) {
			t.Errorf("%s is not JSON", got)
		}
	}
}
