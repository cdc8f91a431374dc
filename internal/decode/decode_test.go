package decode

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type part struct {
	ID    int64  `json:"id"`
	Name  string `json:"name,omitempty"`
	Small int8   `json:"small"`
	Plain bool
	Share *float64          `json:"share"`
	Inner *part             `json:"inner"`
	List  []part            `json:"list"`
	Pair  [2]uint16         `json:"pair"`
	Words map[string]string `json:"words"`
	Count map[int]int       `json:"count"`
	Any   any               `json:"any"`
	Bytes []byte            `json:"bytes"`
	At    time.Time         `json:"at"`
	Took  time.Duration     `json:"took"`
	Raw   json.RawMessage   `json:"raw"`
	Not   string            `json:"-"`
	base
}

type base struct {
	ID    int `json:"id"` // hidden by that of part
	Owner string
}

// Each case is decoded into part by both implementations.
var cases = []string{
	`{}`, `null`, ` {"id":1} `, `{"id":1}x`, `{"id":`, ``, `[]`, `"x"`, `1`, `{"id":"1"}`, `{"id":1.5}`, `{"id":1e3}`, `{"id":9223372036854775808}`,
	`{"ID":1,"Id":2,"iD":3}`, `{"NAME":"a"}`, `{"i_d":1}`, `{"plain":true,"PLAIN":false}`, `{"\u0069d":7}`, `{"name":"\ud800"}`, `{"name":"\u00e4\n"}`, "{\"name\":\"\xff\"}", "{\"name\":\"a\nb\"}",
	`{"small":128}`, `{"small":-128}`, `{"share":null}`, `{"share":1.5}`, `{"share":1e999}`, `{"inner":{"inner":{"id":1}}}`, `{"inner":{"id":1},"inner":{"name":"b"}}`,
	`{"list":[{"id":1},null,{"id":3}]}`, `{"list":[{"id":1}],"list":[{"name":"a"}]}`, `{"list":null}`, `{"list":{}}`, `{"pair":[1]}`, `{"pair":[1,2,3]}`, `{"pair":[1,70000]}`,
	`{"words":{"a":"b","a":"c"}}`, `{"words":{"a":1}}`, `{"count":{"1":2}}`, `{"count":{"x":2}}`, `{"any":1}`, `{"any":{"a":[1,"b",null,true]}}`, `{"any":12345678901234567890}`,
	`{"bytes":"aGk="}`, `{"bytes":"?"}`, `{"bytes":[1,2]}`, `{"bytes":"aGk"}`, `{"bytes":"aG\nk="}`, `{"at":"2026-01-02T03:04:05Z"}`, `{"at":"yesterday"}`, `{"at":null}`, `{"took":5}`, `{"took":"5s"}`,
	`{"raw":{"a":  1}}`, `{"raw":null}`, `{"Not":"x","-":"y"}`, `{"Owner":"o","owner":"p"}`, `{"unknown":{"deep":[1,2,{}]}}`, `{"id":01}`, `{"id":-0}`, `{"id":+1}`, `{'id':1}`, `{"id":1,}`,
	strings.Repeat(`{"inner":`, 5) + `{}` + strings.Repeat(`}`, 5), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), `{"any":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) + `}`,
	"\ufeff{}", `{"at":"2026-01-02T3:04:05Z"}`, `{"at":"2026-01-02T03:04:05,5Z"}`, `{"name":null,"id":null,"any":null,"Plain":null}`,
}

func TestArgumentsAreDecodedAsByEncodingJSON(t *testing.T) {
	if !alike(reflect.TypeFor[part](), map[reflect.Type]bool{}) {
		t.Fatal("the type is decoded by encoding/json itself")
	}
	decode := For[part]()
	for _, text := range cases {
		same(t, decode, text)
	}
}

func same[A any](t *testing.T, decode func([]byte, *A) error, text string) {
	t.Helper()
	var got, want A
	gotErr, wantErr := decode([]byte(text), &got), json.Unmarshal([]byte(text), &want)
	if message(gotErr) != message(wantErr) || reflect.TypeOf(gotErr) != reflect.TypeOf(wantErr) || !reflect.DeepEqual(got, want) {
		t.Errorf("%.200q: error %q, encoding/json has %q\n%s", text, message(gotErr), message(wantErr), cmp.Diff(want, got, cmp.AllowUnexported(part{})))
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Valid texts are damaged at random places.
func TestDamagedArgumentsAreDecodedAsByEncodingJSON(t *testing.T) {
	decode, random := For[part](), rand.New(rand.NewPCG(1, 2))
	signs := `{}[]",:\u0019ae.-+ nt` + "\xff\x00\n"
	for range 20_000 {
		text := []byte(cases[random.IntN(len(cases))])
		if len(text) == 0 || len(text) > 1000 {
			continue
		}
		for range 1 + random.IntN(3) {
			text[random.IntN(len(text))] = signs[random.IntN(len(signs))]
		}
		same(t, decode, string(text))
	}
}

type odd struct{ Text string }

func (o *odd) UnmarshalJSON(text []byte) error { o.Text = "read: " + string(text); return nil }

type newer struct{ odd }

func (*newer) UnmarshalJSONFrom(any) error { return nil }

func TestTypesThatMayDifferAreDecodedByEncodingJSON(t *testing.T) {
	same(t, For[struct{ N json.Number }](), `{"N":12}`)
	same(t, For[struct{ N json.Number }](), `{"N":"twelve"}`)
	same(t, For[map[string][]json.Number](), `{"a":["x"]}`)
	same(t, For[struct {
		Part part `json:",inline"`
	}](), `{"id":1,"Part":{"id":2}}`)
	same(t, For[struct {
		ID int `json:"id,string"`
	}](), `{"id":"null"}`)
	same(t, For[struct {
		Name string `json:"'name'"`
	}](), `{"name":"a","'name'":"b"}`)
	same(t, For[struct {
		ID int `json:"id,case:strict"`
	}](), `{"ID":1}`)
	same(t, For[struct{ Odd odd }](), `{"Odd":null}`)
	same(t, For[odd](), ` {"a": 1} `)
	same(t, For[*odd](), `null`)
	same(t, For[newer](), `{"a":1}`)
	same(t, For[[]any](), `[1,{"a":"b"}]`)
	same(t, For[int](), `"x"`)
}

func BenchmarkDecode(b *testing.B) {
	text := []byte(`{"text":"` + strings.Repeat("holdfast ", 20) + `"}`)
	type args struct {
		Text string `json:"text"`
	}
	decode := For[args]()
	b.ReportAllocs()
	for b.Loop() {
		var a args
		if err := decode(text, &a); err != nil {
			b.Fatal(err)
		}
	}
}
