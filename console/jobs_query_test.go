package console

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const someID = "01890a5d-ac96-774b-bcce-b302099a8057"

func TestASearchIsReadAsItWasMeant(t *testing.T) {
	id, _ := holdfast.ParseID(someID)
	for text, want := range map[string]store.Filter{
		"":                                     {},
		"state:failed kind:fetch":              {State: holdfast.Failed, Kind: "fetch"},
		"  STATE:Failed\tcode:GW_5XX ":         {State: holdfast.Failed, Code: "GW_5XX"},
		`tag:"big \"file\"" owner:ada`:         {Tag: `big "file"`, Owner: "ada"},
		`queue:"C:\temp"`:                      {Queue: `C:\temp`},
		"kind:a:b dependency:x":                {Kind: "a:b", Dependency: "x"},
		"is:dead age:>1h30m":                   {DeadLetters: true, OlderThan: 90 * time.Minute},
		"is:retrying age:>1h age:<7d":          {Retrying: true, OlderThan: time.Hour, NewerThan: 7 * 24 * time.Hour},
		"worker:web-1 generation:2":            {Worker: "web-1", Generation: 2},
		"group:" + someID:                      {Group: id},
		"redrive:" + someID + " fingerprint:f": {Redrive: id, Fingerprint: "f"},
		"kind:x kind:x":                        {Kind: "x"},
	} {
		got := parseJobs(text)
		if got.problem != "" || got.filter != want {
			t.Errorf("%q: %+v, %q", text, got.filter, got.problem)
		}
		if again := parseJobs(got.without("")); again.filter != want || again.problem != "" {
			t.Errorf("%q is written as %q, which is read as %+v, %q", text, got.without(""), again.filter, again.problem)
		}
	}
}

func TestASearchThatCannotBeReadSaysWhatToDo(t *testing.T) {
	for text, word := range map[string]string{
		"timeout":                 "Free text is not searched",
		"knd:fetch":               "Did you mean kind?",
		"dep:gateway":             "Did you mean dependency?",
		"zebra:x":                 "Use one of state, is, benign, kind",
		"-kind:x":                 "Exclusion is not supported",
		"!kind:x":                 "Exclusion is not supported",
		"kind:x OR kind:y":        "OR is not supported",
		"kind:":                   "such as kind:mail",
		"kind:x kind:y":           "given twice",
		"state:dead":              "Use is:dead",
		"state:done":              "Use state:queued",
		"is:failed":               "state:failed",
		"age:1h":                  "age:>1h",
		"age:>soon":               "is not an age",
		"age:>0h":                 "is not an age",
		"age:>999999999w":         "a hundred years",
		"generation:0":            "not a number from 1",
		"group:7":                 "is not an id",
		"category:bad weather":    "There is no category",
		`kind:"two words`:         "Close it",
		"kind:x " + someID:        "cannot be combined",
		strings.Repeat("a", 3000): "Shorten it",
	} {
		if got := parseJobs(text); !strings.Contains(got.problem, word) {
			t.Errorf("%.40q: %q does not say %q", text, got.problem, word)
		}
	}
}

func TestTheSearchThatWasMeantIsOffered(t *testing.T) {
	for text, want := range map[string]string{"owner:ada knd:\"a b\" age:>1h": "owner:ada kind:\"a b\" age:>1h", "state:dead kind:x": "is:dead kind:x", "zebra:x": ""} {
		if got := parseJobs(text).suggestion; got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

func TestAJobsIDLeadsToTheJob(t *testing.T) {
	for text, want := range map[string]bool{someID: true, " " + strings.ToUpper(someID) + " ": true, `"` + someID + `"`: true, "id:" + someID: true, "kind:x": false, someID + "x": false} {
		if _, ok := loneID(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}

func FuzzASearchIsReadTheSameAgain(f *testing.F) {
	for _, seed := range []string{"", "state:failed kind:x", `tag:"a \" b" is:dead`, "age:>1h age:<2d", `kind:\ :"`, "kind:\"\x00\"", "-a:b", "é:ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := parseJobs(text)
		if got.problem != "" || !utf8.ValidString(text) {
			return
		}
		if again := parseJobs(got.without("")); again.problem != "" || again.filter != got.filter || again.category != got.category {
			t.Errorf("%q is written as %q, which is another search: %+v, %q", text, got.without(""), again.filter, again.problem)
		}
	})
}
