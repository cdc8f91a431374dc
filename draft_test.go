package holdfast_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

func TestIDsOfOneProcessAreUniqueAndInOrder(t *testing.T) {
	const each = 5000
	var group sync.WaitGroup
	made := make([][]holdfast.ID, 8)
	for n := range made {
		group.Go(func() {
			for range each {
				made[n] = append(made[n], holdfast.NewID())
			}
		})
	}
	group.Wait()
	seen := map[holdfast.ID]bool{}
	for _, ids := range made {
		if !slices.IsSortedFunc(ids, func(a, b holdfast.ID) int { return slices.Compare(a[:], b[:]) }) {
			t.Error("ids made one after the other are out of order")
		}
		for _, id := range ids {
			if seen[id] || id[6]>>4 != 7 || id[8]>>6 != 2 {
				t.Fatalf("id %v is a duplicate, or not a UUID of version 7", id)
			}
			seen[id] = true
		}
	}
}

func TestAnIDSurvivesMarshallingAndParsing(t *testing.T) {
	id := holdfast.NewID()
	text, err := json.Marshal(map[string]holdfast.ID{"id": id})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]holdfast.ID
	if err := json.Unmarshal(text, &back); err != nil || back["id"] != id {
		t.Fatalf("%s became %v: %v", text, back["id"], err)
	}
	for _, bad := range []string{"", "17", id.String()[1:], id.String() + "0", strings.Replace(id.String(), "-", "x", 1), "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz"} {
		if _, err := holdfast.ParseID(bad); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("ParseID(%q) returns %v", bad, err)
		}
	}
}

func TestADraftThatCannotBeStoredIsRefusedWithEveryProblemNamed(t *testing.T) {
	now := time.Now()
	for problem, draft := range map[string]holdfast.Draft{
		"kind":                 {},
		"kind \"a b\"":         {Kind: "a b"},
		"queue":                {Kind: "k", Queue: strings.Repeat("q", 200)},
		"not valid JSON":       {Kind: "k", Args: json.RawMessage(`{"a":`)},
		"the limit is 1048576": {Kind: "k", Args: json.RawMessage(`"` + strings.Repeat("x", check.MaxArgs) + `"`)},
		"not valid UTF-8":      {Kind: "k", Args: json.RawMessage("\"\xff\"")},
		"owner":                {Kind: "k", Owner: "a\x00b"},
		"unique key":           {Kind: "k", UniqueKey: strings.Repeat("u", 256)},
		"empty tag":            {Kind: "k", Tags: []string{""}},
		"tags":                 {Kind: "k", Tags: slices.Repeat([]string{"t"}, 33)},
		"delay":                {Kind: "k", Delay: -time.Second},
		"delay 2562047h":       {Kind: "k", Delay: 1<<63 - 1}, // pg-boss#389: a year overflowed a timer
		"both a delay":         {Kind: "k", Delay: time.Second, RunAt: now},
		"both an expiry":       {Kind: "k", ExpireIn: time.Second, ExpireAt: now},
		"expiry":               {Kind: "k", ExpireIn: -1},
		"run time":             {Kind: "k", RunAt: now.AddDate(500, 0, 0)},
		"max attempts":         {Kind: "k", MaxAttempts: -1},
	} {
		err := draft.Prepare()
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), problem) {
			t.Errorf("wanted a problem about %s, got %v", problem, err)
		}
	}
	all := holdfast.Draft{Owner: "\x01", MaxAttempts: -1}
	if err := all.Prepare(); strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("wanted all three problems at once, got %v", err)
	}
}

func TestPrepareSetsTheDefaultsOfADraft(t *testing.T) {
	draft := holdfast.Draft{Kind: "mail:welcome/v1.2_x-y"}
	if err := draft.Prepare(); err != nil {
		t.Fatal(err)
	}
	if draft.ID.IsZero() || draft.Queue != holdfast.DefaultQueue || string(draft.Args) != "null" {
		t.Errorf("got %+v", draft)
	}
}

type letter struct {
	To string `json:"to"`
}

func (letter) Kind() string { return "letter" }

func TestArgumentsThatWereReplacedAreValidatedAgain(t *testing.T) {
	written, err := holdfast.NewDraft(letter{"ada"})
	if err != nil {
		t.Fatal(err)
	}
	for text, fits := range map[string]bool{string(written.Args): true, `{"to":"eve"}`: true, `{"to":"eve"`: false, `{"to":"ada"]`: false, `{"to":`: false} {
		d := written
		d.Args = json.RawMessage(text)
		if err := d.Prepare(); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
	written.Args = written.Args[:len(written.Args)-1]
	if written.Prepare() == nil {
		t.Error("arguments that were cut off passed")
	}
}
