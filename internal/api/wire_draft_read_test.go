package api

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
)

var sameDraft = cmp.AllowUnexported(holdfast.Draft{})

// agree fails if the reader accepts a text that the library refuses or reads otherwise. It reports whether the reader accepted the text.
func agree(t *testing.T, text string) bool {
	t.Helper()
	read, ok := readDrafts([]byte(text), nil)
	if !ok {
		return false
	}
	var want []holdfast.Draft
	if err := json.Unmarshal([]byte(text), &want, options); err != nil {
		t.Errorf("%q was read, and the library refuses it: %v", text, err)
	} else if diff := cmp.Diff(want, read, sameDraft); diff != "" {
		t.Errorf("%q: %s", text, diff)
	}
	return true
}

// draftLists are lists of drafts that a reader could get wrong.
func draftLists() (lists []string) {
	members := []string{
		`"kind":"mail"`, `"kind":""`, `"kind":null`, `"kind":7`, `"kind":"a\"b"`, `"kind":"\u0000"`, `"kind":"ü"`, "\"kind\":\"\xff\"", `"kind": "mail"`, `"Kind":"mail"`, `"kind":["mail"]`, `"colour":"red"`, `"\u006bind":"mail"`,
		`"queue":"slow/eu"`, `"args":{"n":1,"deep":[{"x":"y"}]}`, `"args":{"x":1,"x":2}`, `"args":null`, `"args":""`, `"args":01`, `"args":"$text"`, `"args":`, `"owner":"acme"`,
		`"id":"01890a5d-ac96-774b-bcce-b302099a8057"`, `"id":"01890A5D-AC96-774B-BCCE-B302099A8057"`, `"id":"01890a5dac96774bbcceb302099a8057"`, `"id":null`, `"group":"01890a5d-ac96-774b-bcce-b302099a8057"`,
		`"priority":-3`, `"priority":40000`, `"priority":1.0`, `"priority":1e2`, `"priority":-0`, `"priority":"1"`, `"max_attempts":7`, `"max_attempts":99999999999999999999`, `"dependency":"host"`, `"step":"load"`,
		`"unique_key":"k"`, `"idempotency_key":"i"`, `"order":"o"`, `"trace":"00-ab-cd-01"`, `"delay":"1m"`, `"tags":["x"]`,
	}
	for _, one := range members {
		lists = append(lists, "[{"+one+"}]", `[{"kind":"mail",`+one+"}]", "[{"+one+`},{"kind":"mail"}]`, "[{"+one+","+one+"}]")
	}
	return append(lists, `[]`, `[{}]`, `[{},{}]`, ``, `[`, `[{`, `[{"`, `[{"kind"`, `[{"kind":`, `[{"kind":"mail"`, `[{"kind":"mail"}`, `[{"kind":"mail"},`, `[{"kind":"mail"},]`, `[{"kind":"mail"}]]`, `[{"kind":"mail"}] `,
		`[null]`, `null`, `["mail"]`, `{"kind":"mail"}`, `[{"kind":"mail",}]`, `[{,"kind":"mail"}]`)
}

func TestTheReaderOfDraftsAgreesWithTheLibrary(t *testing.T) {
	for _, text := range draftLists() {
		agree(t, text)
	}
	// What a client sends is read without the library.
	text := []byte("[")
	for i := range 3 {
		d := holdfast.Draft{
			ID: holdfast.NewID(), Kind: "mail", Queue: "slow/eu", Args: []byte(fmt.Sprintf(`{"to":"ann","n":%d}`, i)), Priority: -3, Owner: "ünal", Group: holdfast.NewID(), Step: "load", Dependency: "host",
			MaxAttempts: 7, UniqueKey: "k", IdempotencyKey: "once", Order: "account-7", Trace: "00-ab-cd-01",
		}
		if i > 0 {
			text = append(text, ',')
		}
		text, _ = AppendDraft(text, &d, d.ID)
	}
	if text := string(text) + "]"; !agree(t, text) {
		t.Errorf("the library is needed for %s", text)
	}
}

func FuzzReadDrafts(f *testing.F) {
	for _, text := range draftLists() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { agree(t, text) })
}
