package ops

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestEqualMembersAreOneNodeOfTheGraph(t *testing.T) {
	id := func(n int) holdfast.ID { return holdfast.ID{byte(n / 10), byte(n % 10)} }
	on := func(outcome holdfast.Outcome, jobs ...int) (all []holdfast.Condition) {
		for _, n := range jobs {
			all = append(all, holdfast.Condition{Job: id(n), On: outcome})
		}
		return all
	}
	// Three documents are fetched and parsed; one step needs all of them, another runs if the first document cannot be parsed. Ids do not follow the order of the
	// steps, and one member waits for a member that was not read.
	read := store.GroupGraph{More: true, Members: []store.Member{
		{Job: id(1), Kind: "index", Step: "index", State: holdfast.Queued, Waiting: true, When: on(holdfast.OnComplete, 21, 22, 23)},
		{Job: id(11), Kind: "fetch", State: holdfast.Complete}, {Job: id(12), Kind: "fetch", State: holdfast.Complete}, {Job: id(13), Kind: "fetch", State: holdfast.Processing},
		{Job: id(21), Kind: "parse", State: holdfast.Failed, Code: "BROKEN", When: on(holdfast.OnComplete, 11)},
		{Job: id(22), Kind: "parse", State: holdfast.Complete, When: on(holdfast.OnComplete, 12)},
		{Job: id(23), Kind: "parse", State: holdfast.Queued, Waiting: true, When: on(holdfast.OnComplete, 13)},
		{Job: id(31), Kind: "tell", State: holdfast.Cancelled, Skipped: true, When: on(holdfast.OnFailed, 21)},
		{Job: id(32), Kind: "fetch", Step: "extra", State: holdfast.Queued, When: on(holdfast.OnComplete, 99)},
	}}
	want := Graph{More: true, Nodes: []GraphNode{
		{Kind: "fetch", Job: id(11), Members: holdfast.Members{Total: 3, Complete: 2, Processing: 1}},
		{Kind: "fetch", Step: "extra", Job: id(32), Members: holdfast.Members{Total: 1, Queued: 1}},
		{Kind: "parse", Job: id(21), Code: "BROKEN", Layer: 1, Members: holdfast.Members{Total: 3, Failed: 1, Complete: 1, Waiting: 1}, Waits: []GraphWait{{0, holdfast.OnComplete}}},
		{Kind: "index", Step: "index", Job: id(1), Layer: 2, Members: holdfast.Members{Total: 1, Waiting: 1}, Waits: []GraphWait{{2, holdfast.OnComplete}}},
		{Kind: "tell", Job: id(31), Layer: 2, Members: holdfast.Members{Total: 1, Skipped: 1}, Waits: []GraphWait{{2, holdfast.OnFailed}}},
	}}
	if diff := cmp.Diff(want, graphOf(read)); diff != "" {
		t.Error(diff)
	}
}

func TestTheGraphOfADamagedGroupEnds(t *testing.T) {
	a, b := holdfast.ID{1}, holdfast.ID{2}
	g := graphOf(store.GroupGraph{Members: []store.Member{
		{Job: a, Kind: "mail", When: []holdfast.Condition{{Job: b}}}, {Job: b, Kind: "mail", When: []holdfast.Condition{{Job: a}}},
	}})
	if len(g.Nodes) != 2 {
		t.Errorf("%+v", g)
	}
	if g := graphOf(store.GroupGraph{}); len(g.Nodes) != 0 {
		t.Errorf("%+v", g)
	}
}
