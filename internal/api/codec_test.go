package api

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

func TestJSONIsDecodedStrictly(t *testing.T) {
	for _, text := range []string{
		`{"kind":"a","kind":"b"}`, `{"kind":"a","nope":1}`, `{"kind":"a"} x`, "\xef\xbb\xbf{}", `{"kind":"\ud800"}`, `{"kind":1}`, `{"delay":1}`, `{"delay":"1d"}`, `{"priority":40000}`, `{"max_attempts":1e99}`,
		`{"owner":"a\u0000b"}`, strings.Repeat("[", 65) + strings.Repeat("]", 65), `{"args":` + strings.Repeat("[", 100) + `}`, `{"KIND":"a"}`, "", "nul", `{"args":{"a":1,"a":2}}`,
	} {
		var d holdfast.Draft
		err := Unmarshal([]byte(text), &d)
		if !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%.60q: %v", text, err)
			continue
		}
		if said := err.Error(); said == "" || len(said) > 450 || strings.ContainsFunc(said, unicode.IsControl) || !utf8.ValidString(said) {
			t.Errorf("%.60q: %q", text, said)
		}
	}
	var d holdfast.Draft
	if err := Unmarshal([]byte(`{"kind":"a","args":{"text":"a\u0000b","big":9007199254740993},"delay":"1m30s"}`), &d); err != nil || string(d.Args) != `{"text":"a\u0000b","big":9007199254740993}` || d.Delay != 90*time.Second {
		t.Errorf("%+v %v", d, err)
	}
}

func TestNestingIsCountedOutsideOfStrings(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, well := range map[string]bool{
		deep(64): true, deep(65): false, `"` + strings.Repeat("[", 1000) + `"`: true, `"\"` + strings.Repeat("{", 100) + `"`: true, `"\\"` + deep(65): false, strings.Repeat("[],", 1000): true,
	} {
		if err := checkDepth([]byte(text)); (err == nil) != well {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

type everyParam struct {
	ID     holdfast.ID   `path:"id"`
	Limit  int           `query:"limit"`
	Many   int           `query:"many" max:"1000"`
	Any    int64         `query:"any"`
	Small  int16         `query:"small"`
	Share  float64       `query:"share"`
	Name   string        `query:"name"`
	Names  []string      `query:"names"`
	Yes    bool          `query:"yes"`
	Within time.Duration `query:"within"`
	At     time.Time     `query:"at"`
	Match  string        `header:"If-Match"`
}

func TestParametersAreReadStrictly(t *testing.T) {
	read := func(query string) (in everyParam, err error) {
		r := httptest.NewRequest("GET", "/x?"+query, nil)
		r.SetPathValue("id", holdfast.NewID().String())
		return in, Decode(r, nil, &in)
	}
	for _, query := range []string{
		"limit=201", "limit=-1", "many=1001", "many=-1", "small=32768", "any=9223372036854775808", "share=NaN", "share=Inf", "share=-inf", "share=1e999", "share=x", "yes=maybe", "within=-1s", "within=1000000h", "within=1",
		"at=now", "name=%00", "name=%ff", "name=%0a", "names=a&names=%00", "name=a&name=b", "nope=1", "name=%zz", "limit=", "any=1.0", "name=" + strings.Repeat("x", 2049),
	} {
		if _, err := read(query); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%.60s: %v", query, err)
		}
	}
	in, err := read("limit=200&many=1000&any=-5&small=-3&share=0.5&name=%C3%A4&names=a&names=b&yes=true&within=1h&at=2026-03-01T12:00:00Z")
	if err != nil || in.Limit != 200 || in.Many != 1000 || in.Any != -5 || in.Small != -3 || in.Share != 0.5 || in.Name != "ä" || len(in.Names) != 2 || !in.Yes || in.Within != time.Hour || in.At.IsZero() {
		t.Errorf("%+v %v", in, err)
	}
}

func TestEncodedRequestsDecodeToTheSame(t *testing.T) {
	sent := everyParam{ID: holdfast.NewID(), Limit: 5, Any: -1, Share: 0.25, Name: "a&b=c/ä?", Names: []string{"x", "y z"}, Yes: true, Within: time.Minute, Match: `"abc"`}
	target, header, body, err := Encode("/x/{id}", sent)
	if err != nil || body != nil {
		t.Fatal(body, err)
	}
	r := httptest.NewRequest("GET", target, nil)
	r.Header = header
	r.SetPathValue("id", strings.TrimPrefix(r.URL.Path, "/x/"))
	var got everyParam
	if err := Decode(r, nil, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(sent) {
		t.Errorf("%+v\n%+v %v", sent, got, err)
	}
}

func TestEveryErrorKindSurvivesHTTP(t *testing.T) {
	id := holdfast.NewID()
	for _, known := range problemKinds {
		p := ProblemOf(&holdfast.Error{Err: known.kind, Message: "say\r\n\x1b[31mit\u202e", Job: id, RetryAfter: 1500 * time.Millisecond})
		back := p.Err()
		if !errors.Is(back, known.kind) || p.Status != known.status || p.Code != known.code || p.Title == "" || strings.ContainsFunc(p.Detail, unicode.IsControl) || strings.ContainsRune(p.Detail, '\u202e') {
			t.Errorf("%+v: %v", p, back)
		}
		if known.kind != ErrInternal && (p.Job != id || p.RetryAfter() != 2) {
			t.Errorf("%+v", p)
		}
	}
	for _, unknown := range []error{errors.New("password=hunter2"), context.Canceled, fmt.Errorf("pq: %w", errors.New("secret"))} {
		if p := ProblemOf(unknown); p.Code != "internal" || strings.Contains(p.Detail, unknown.Error()) {
			t.Errorf("%v: %+v", unknown, p)
		}
	}
	if (*Problem)(nil).Err() != nil || Errs(Problems([]error{nil}))[0] != nil {
		t.Error("nothing is a trouble")
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{`{"kind":"a"}`, `{"kind":"a","args":{"a":[1,2,{"b":null}]},"delay":"1s"}`, `[`, `{"a":1,"a":2}`, "\xef\xbb\xbf{}", `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, to := range []any{&holdfast.Draft{}, &[]holdfast.Draft{}, &holdfast.Job{}, &Problem{}, &map[string]any{}, &Word{}} {
			if err := Unmarshal(text, to); err != nil && !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%T: %v", to, err)
			} else if err == nil {
				if _, err := Marshal(to); err != nil {
					t.Errorf("%T is read and cannot be written: %v", to, err)
				}
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"limit=5", "name=%ff", "within=1h&at=2026-03-01T12:00:00Z", "%zz", "a=b;c=d", "names=a&names=b", "share=1e308"} {
		f.Add(seed, `"x"`)
	}
	f.Fuzz(func(t *testing.T, query, header string) {
		r := httptest.NewRequest("GET", "/x", nil)
		r.URL.RawQuery = query
		r.Header["If-Match"] = []string{header}
		r.SetPathValue("id", header)
		var in everyParam
		if err := Decode(r, nil, &in); err != nil && !errors.Is(err, holdfast.ErrInvalid) {
			t.Error(err)
		}
		if strings.ContainsFunc(in.Name+in.Match, unicode.IsControl) || in.Limit > maxPage || in.Limit < 0 {
			t.Errorf("%+v", in)
		}
	})
}
