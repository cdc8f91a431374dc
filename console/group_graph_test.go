package console

import (
	"fmt"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A line that passes a column has a row of its own there, so that no line crosses a node.
func TestNoLineOfAGraphCrossesANode(t *testing.T) {
	wait := func(nodes ...int) (waits []ops.GraphWait) {
		for _, n := range nodes {
			waits = append(waits, ops.GraphWait{Node: n, On: holdfast.OnComplete})
		}
		return waits
	}
	for _, nodes := range [][]ops.GraphNode{
		{{Kind: "a"}, {Kind: "b", Layer: 1, Waits: wait(0)}, {Kind: "c", Layer: 2, Waits: wait(0, 1)}, {Kind: "d", Layer: 3, Waits: wait(0, 2)}},
		{{Kind: "a"}, {Kind: "b"}, {Kind: "c", Layer: 1, Waits: wait(0)}, {Kind: "d", Layer: 1, Waits: wait(1)}, {Kind: "e", Layer: 2, Waits: wait(2, 3)}, {Kind: "f", Layer: 3, Waits: wait(0, 1, 4)}},
		{{Kind: "alone"}},
	} {
		l := layGraph(nodes)
		places := map[string]bool{}
		for n := range nodes {
			if place := fmt.Sprint(l.at(n)); places[place] {
				t.Errorf("two nodes at %s", place)
			} else {
				places[place] = true
			}
			for i := range nodes[n].Waits {
				if other := l.crossed(n, i); other >= 0 {
					t.Errorf("the line from %s to %s crosses %s", nodes[nodes[n].Waits[i].Node].Kind, nodes[n].Kind, nodes[other].Kind)
				}
			}
		}
	}
}

// crossed returns a node that the line of a wait crosses; -1 if there is none.
func (l *graphLayout) crossed(n, wait int) int {
	line := l.path(n, wait)
	for _, point := range line[1 : len(line)-1] {
		for other := range l.nodes {
			if at := l.at(other); point[0] >= at[0] && point[0] <= at[0]+nodeWidth && point[1] > at[1] && point[1] < at[1]+nodeHeight {
				return other
			}
		}
	}
	return -1
}

func TestABoxShowsTheStatesOfAllItsMembers(t *testing.T) {
	for _, one := range []struct {
		node      ops.GraphNode
		box, full string
	}{
		{ops.GraphNode{Code: "NOT_FOUND", Members: holdfast.Members{Total: 1, Failed: 1}}, "failed, NOT_FOUND", "failed, NOT_FOUND"},
		{ops.GraphNode{Code: "NOT_FOUND", Members: holdfast.Members{Total: 4, Failed: 1, Complete: 3}}, "1 failed, 3 complete", "1 failed, NOT_FOUND, 3 complete"},
	} {
		if _, box, full := graphState(one.node); box != one.box || full != one.full || box != fitted(box, nodeChars+4) {
			t.Errorf("box %q, title %q; want %q and %q", box, full, one.box, one.full)
		}
	}
}

func TestALongNameIsClippedByItsWidth(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "exactly": "exactly", "too long a name": "too lon…", "日本語の名": "日本語…"} {
		if got := fitted(text, 7); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
