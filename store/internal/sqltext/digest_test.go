package sqltext_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

func TestDraftsThatAskForTheSameHaveOneDigest(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	one := holdfast.Draft{Kind: "mail", RunAt: at, Tags: []string{"a", "b"}}
	two := holdfast.Draft{Kind: "mail", Queue: "default", Args: []byte("null"), RunAt: at.In(time.FixedZone("east", 3600)), Tags: []string{"a", "b"}, IdempotencyKey: "k"}
	for _, d := range []*holdfast.Draft{&one, &two} {
		if err := d.Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	if sqltext.Digest(one) != sqltext.Digest(two) {
		t.Error("they differ, though only their ids and their spelling do")
	}
}

func TestDraftsThatDifferInAnythingDifferInDigest(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	seen := map[[32]byte]int{}
	for i, d := range []holdfast.Draft{
		{Kind: "mail"}, {Kind: "mail2"}, {Kind: "mail", Queue: "q"}, {Kind: "mail", Args: []byte("1")}, {Kind: "mail", Priority: -1}, {Kind: "mail", Owner: "o"},
		{Kind: "mail", Tags: []string{"a", "b"}}, {Kind: "mail", Tags: []string{"ab"}}, {Kind: "mail", Tags: []string{"b", "a"}}, {Kind: "mail", Delay: 1},
		{Kind: "mail", RunAt: at}, {Kind: "mail", ExpireIn: 1}, {Kind: "mail", ExpireAt: at}, {Kind: "mail", MaxAttempts: 1}, {Kind: "mail", UniqueKey: "u"},
		{Kind: "mail", UniqueKey: "u", UniqueDone: true}, {Kind: "mail", UniqueKey: "u", Replace: &holdfast.Replace{}},
		{Kind: "mail", UniqueKey: "u", Replace: &holdfast.Replace{Start: true}}, {Kind: "mail", UniqueKey: "u", Replace: &holdfast.Replace{Start: true, MaxAge: 1}},
		{Kind: "mail", UniqueKey: "u", Replace: &holdfast.Replace{Follow: true}}, {Kind: "mail", Order: "o"}, {Kind: "mail", Order: "o", OrderHold: true}, {Kind: "mail", Order: "p"},
		{Kind: "mail", Dependency: "gateway"}, {Kind: "mail", Dependency: "gateway2"}, {Kind: "mail", RetryWithin: 1}, {Kind: "mail", Dependency: "gateway", RetryWithin: 1},
		{Kind: "mail", Group: holdfast.ID{1}}, {Kind: "mail", Group: holdfast.ID{2}}, {Kind: "mail", Group: holdfast.ID{1}, After: []holdfast.ID{{3}}},
		{Kind: "mail", Group: holdfast.ID{1}, After: []holdfast.ID{{3}, {4}}}, {Kind: "mail", Group: holdfast.ID{1}, After: []holdfast.ID{{4}, {3}}},
		{Kind: "mail", Group: holdfast.ID{1}, After: []holdfast.ID{{3}}, AfterAll: true}, {Kind: "mail", Group: holdfast.ID{1}, Step: "load"}, {Kind: "mail", Group: holdfast.ID{1}, Step: "parse"},
		{Kind: "mail", Group: holdfast.ID{1}, When: []holdfast.Condition{{Step: "load"}}}, {Kind: "mail", Group: holdfast.ID{1}, When: []holdfast.Condition{{Step: "load", On: holdfast.OnFailed}}},
		{Kind: "mail", Group: holdfast.ID{1}, When: []holdfast.Condition{{Job: holdfast.ID{3}}}},
	} {
		digest := sqltext.Digest(d)
		if before, twice := seen[digest]; twice {
			t.Errorf("drafts %d and %d have one digest", before, i)
		}
		seen[digest] = i
	}
}

func TestDigestsThatWereStoredStayWhatTheyWere(t *testing.T) {
	d := holdfast.Draft{Kind: "mail", Queue: "default", Args: []byte(`{"to":"ada"}`), Priority: 2, Owner: "o", Tags: []string{"t"}, Delay: time.Minute, MaxAttempts: 3}
	digest := sqltext.Digest(d)
	if got, want := hex.EncodeToString(digest[:]), "f197a53785ba624b5676208dfa0121e9f70295080a56470b7b387086c4496e51"; got != want {
		t.Errorf("%s, but it was %s", got, want)
	}
}
