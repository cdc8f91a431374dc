package holdfast_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestAnOutcomeIsAFunctionOfTheMembers(t *testing.T) {
	for _, c := range []struct {
		members holdfast.Members
		quorum  int
		want    holdfast.GroupState
	}{
		{holdfast.Members{}, 0, holdfast.GroupReady},
		{holdfast.Members{Total: 3, Complete: 3}, 0, holdfast.GroupReady},
		{holdfast.Members{Total: 3, Complete: 2, Failed: 1}, 0, holdfast.GroupPartial},
		{holdfast.Members{Total: 3, Complete: 1, Cancelled: 2}, 0, holdfast.GroupPartial},
		{holdfast.Members{Total: 3, Failed: 2, Cancelled: 1}, 0, holdfast.GroupFailed},
		{holdfast.Members{Total: 3, Complete: 2, Failed: 1}, 2, holdfast.GroupReady},
		{holdfast.Members{Total: 3, Complete: 1, Failed: 2}, 2, holdfast.GroupPartial},
		{holdfast.Members{Total: 3, Failed: 3}, 2, holdfast.GroupFailed},
		{holdfast.Members{Total: 3, Complete: 3}, 5, holdfast.GroupReady},
	} {
		if got := c.members.Outcome(c.quorum); got != c.want {
			t.Errorf("%+v with a quorum of %d is %s, wanted %s", c.members, c.quorum, got, c.want)
		}
	}
}

func TestAnInvalidGroupIsRefusedWithEveryProblemNamed(t *testing.T) {
	id := holdfast.NewID()
	g := holdfast.Group{ID: id, Name: "a\nb", Parent: id, Quorum: -1, ExpireIn: -time.Second,
		Then: []holdfast.Then{{On: "done", Draft: holdfast.Draft{Kind: "no good", After: []holdfast.ID{id}}}}}
	err := g.Prepare()
	if !errors.Is(err, holdfast.ErrInvalid) {
		t.Fatalf("answered %v", err)
	}
	for _, problem := range []string{"group name", "its own parent", "quorum of -1", "expiry -1s", `on "done"`, "jobs to wait for", "continuation 1"} {
		if !strings.Contains(err.Error(), problem) {
			t.Errorf("nothing about %q in: %v", problem, err)
		}
	}
}

func TestAContinuationIsMadeForItsOutcomeWithTheGroupAsArguments(t *testing.T) {
	g := holdfast.Group{ID: holdfast.NewID(), Owner: "ann", State: holdfast.GroupPartial, Generation: 2, Then: []holdfast.Then{
		{Draft: holdfast.Draft{Kind: "any"}},
		{On: holdfast.GroupPartial, Draft: holdfast.Draft{Kind: "partly", Owner: "bob", Args: json.RawMessage(`1`)}},
		{On: holdfast.GroupReady, Draft: holdfast.Draft{Kind: "ready"}},
	}}
	drafts := g.Continuations()
	if len(drafts) != 2 || drafts[0].Kind != "any" || drafts[1].Kind != "partly" {
		t.Fatalf("these follow: %+v", drafts)
	}
	var about struct {
		Group      holdfast.ID
		State      holdfast.GroupState
		Generation int
	}
	if err := json.Unmarshal(drafts[0].Args, &about); err != nil || about.Group != g.ID || about.State != g.State || about.Generation != 2 {
		t.Errorf("its arguments are %s: %v", drafts[0].Args, err)
	}
	if drafts[0].Owner != "ann" || drafts[1].Owner != "bob" || string(drafts[1].Args) != "1" {
		t.Errorf("owners and arguments: %+v", drafts)
	}
	if g.State = holdfast.GroupCancelled; len(g.Continuations()) != 0 {
		t.Error("a continuation of any outcome follows a cancelled group")
	}
}

func TestADraftWaitsOnlyForDistinctMembersOfItsGroup(t *testing.T) {
	other := holdfast.NewID()
	self := holdfast.NewID()
	for problem, d := range map[string]holdfast.Draft{
		"without a group":              {Kind: "k", After: []holdfast.ID{other}},
		"once":                         {Kind: "k", Group: other, After: []holdfast.ID{other, other}},
		"waiting for " + self.String(): {ID: self, Kind: "k", Group: other, After: []holdfast.ID{self}},
		"limit is 1000":                {Kind: "k", Group: other, After: manyIDs(1001)},
	} {
		if err := d.Prepare(); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("wanted %q, answered %v", problem, err)
		}
	}
}

func manyIDs(n int) (ids []holdfast.ID) {
	for range n {
		ids = append(ids, holdfast.NewID())
	}
	return ids
}

func TestTheFirstMatchingRetentionRuleApplies(t *testing.T) {
	now := time.Now()
	p := store.Purge{Scan: 1, Rules: []store.RetentionRule{
		{Name: "keep-invoices", Kind: "invoice", For: store.Forever},
		{Name: "complete", State: holdfast.Complete, For: time.Hour},
		{Name: "at-once", Owner: "bob", For: 0},
		{Name: "partial", Group: holdfast.GroupPartial, For: time.Hour},
		{Name: "code", Code: "GONE", For: time.Minute},
	}}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	old := now.Add(-2 * time.Hour)
	for _, c := range []struct {
		stone store.Tombstone
		rule  string
		purge bool
	}{
		{store.Tombstone{Kind: "invoice", State: holdfast.Complete, FinishedAt: old}, "keep-invoices", false},
		{store.Tombstone{Kind: "mail", State: holdfast.Complete, FinishedAt: old}, "complete", true},
		{store.Tombstone{Kind: "mail", State: holdfast.Complete, FinishedAt: now.Add(-time.Hour + time.Second)}, "complete", false},
		{store.Tombstone{Kind: "mail", State: holdfast.Failed, Owner: "bob", FinishedAt: now}, "at-once", true},
		{store.Tombstone{Kind: "mail", State: holdfast.Failed, GroupState: holdfast.GroupPartial, FinishedAt: old}, "partial", true},
		{store.Tombstone{Kind: "mail", State: holdfast.Failed, Code: "GONE", FinishedAt: old}, "code", true},
		{store.Tombstone{Kind: "mail", State: holdfast.Failed, FinishedAt: old}, "", false},
	} {
		if rule, purge := p.Decide(c.stone, now); rule != c.rule || purge != c.purge {
			t.Errorf("%+v: %q, %v", c.stone, rule, purge)
		}
	}
}

func TestInvalidRetentionRulesAreRefused(t *testing.T) {
	p := store.Purge{Rules: []store.RetentionRule{{Name: "no name!", For: -2}, {Name: "live", State: holdfast.Queued}, {Name: "open", Group: holdfast.GroupOpen}}}
	err := p.Check()
	for _, problem := range []string{"no name!", "-1 for ever", "only ended jobs", "open", "a scan of 0 jobs"} {
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("nothing about %q in: %v", problem, err)
		}
	}
}
