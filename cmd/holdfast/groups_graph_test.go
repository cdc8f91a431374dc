package main

import (
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func TestAGraphIsPrintedAsATree(t *testing.T) {
	g := ops.Graph{More: true, Nodes: []ops.GraphNode{
		{Kind: "fetch", Members: holdfast.Members{Total: 3, Complete: 2, Failed: 1}, Code: "BROKEN"},
		{Step: "charge", Kind: "pay", Members: holdfast.Members{Total: 1, Complete: 1}},
		{Kind: "parse", Layer: 1, Members: holdfast.Members{Total: 3, Complete: 2, Cancelled: 1}, Waits: []ops.GraphWait{{Node: 0, On: holdfast.OnComplete}}},
		{Step: "refund", Kind: "pay", Layer: 1, Members: holdfast.Members{Total: 1, Skipped: 1}, Waits: []ops.GraphWait{{Node: 1, On: holdfast.OnFailed}}},
		{Step: "report", Kind: "report", Layer: 2, Members: holdfast.Members{Total: 1, Waiting: 1}, Waits: []ops.GraphWait{{Node: 1, On: holdfast.OnEnded}, {Node: 2, On: holdfast.OnEnded}, {Node: 3, On: holdfast.OnCancelled}}},
	}}
	var out strings.Builder
	printGraph(&out, g)
	want := `MEMBER        STATE                          STARTS WHEN
fetch x 3     1 failed (BROKEN), 2 complete  -
└─ parse x 3  1 cancelled, 2 complete        all 3 fetch are complete
   └─ report  waiting                        refund is cancelled; charge, all 3 parse have ended
charge        complete                       -
└─ refund     skipped                        charge has failed
the group has more members: these are the first thousand
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if printGraph(&out, ops.Graph{}); out.String() != "the group has no members\n" {
		t.Errorf("%q", out.String())
	}
}
