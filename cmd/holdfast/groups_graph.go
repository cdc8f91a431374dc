package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func graphGroupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "graph GROUP", Short: "Show the members of a group and what they wait for, as a tree", Args: exactly("group"),
		Long: `Show the members of a group and what they wait for, as a tree.

Each member is below one that it waits for; the last column names all. Members of the same kind that wait for the same members are one line.`,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				id, err := groupID(ctx, o, args[0])
				if err != nil {
					return err
				}
				g, err := o.GroupGraph(ctx, id)
				if err != nil {
					return err
				}
				return show(c, g, func(out io.Writer) { printGraph(out, g) })
			})
		},
	}
}

func printGraph(out io.Writer, g ops.Graph) {
	if len(g.Nodes) == 0 {
		fmt.Fprintln(out, "the group has no members")
		return
	}
	t := &graphTree{graph: g, below: make([][]int, len(g.Nodes))}
	var roots []int
	for n, node := range g.Nodes {
		if parent := deepest(g, node); parent < 0 {
			roots = append(roots, n)
		} else {
			t.below[parent] = append(t.below[parent], n)
		}
	}
	for _, n := range roots {
		t.add(n, "", "")
	}
	table(out, []string{"MEMBER", "STATE", "STARTS WHEN"}, t.rows)
	if g.More {
		fmt.Fprintln(out, "the group has more members: these are the first thousand")
	}
}

// deepest returns the last of the nodes that a node waits for, below which the tree shows it; -1 if there is none.
func deepest(g ops.Graph, node ops.GraphNode) int {
	parent := -1
	for _, wait := range node.Waits {
		if parent < 0 || g.Nodes[wait.Node].Layer > g.Nodes[parent].Layer {
			parent = wait.Node
		}
	}
	return parent
}

// A graphTree makes the rows of a graph.
type graphTree struct {
	graph ops.Graph
	below [][]int // the nodes that are shown below each node
	rows  [][]string
}

// add adds the row of a node and the rows below it. The first prefix is for the row, the second for those below it.
func (t *graphTree) add(n int, own, inner string) {
	node := t.graph.Nodes[n]
	name := node.Name()
	if node.Members.Total > 1 {
		name = fmt.Sprintf("%s x %d", name, node.Members.Total)
	}
	t.rows = append(t.rows, []string{own + name, nodeState(node), startsWhen(t.graph, node)})
	for i, child := range t.below[n] {
		if i == len(t.below[n])-1 {
			t.add(child, inner+"└─ ", inner+"   ")
		} else {
			t.add(child, inner+"├─ ", inner+"│  ")
		}
	}
}

// nodeState returns the states of the members of a node in words.
func nodeState(n ops.GraphNode) string {
	m := n.Members
	var words []string
	for _, one := range []struct {
		size int
		word string
	}{{m.Failed, "failed"}, {m.Processing, "processing"}, {m.Queued, "queued"}, {m.Waiting, "waiting"}, {m.Cancelled, "cancelled"}, {m.Complete, "complete"}, {m.Skipped, "skipped"}} {
		switch {
		case one.size == 0:
			continue
		case one.size < m.Total:
			words = append(words, fmt.Sprintf("%d %s", one.size, one.word))
		default:
			words = append(words, one.word)
		}
		if one.word == "failed" && n.Code != "" {
			words[len(words)-1] += " (" + n.Code + ")"
		}
	}
	return strings.Join(words, ", ")
}

// startsWhen returns what a node waits for in words.
func startsWhen(g ops.Graph, n ops.GraphNode) string {
	var all []string
	for _, end := range []struct {
		on        holdfast.Outcome
		one, many string
	}{
		{holdfast.OnComplete, "is complete", "are complete"}, {holdfast.OnFailed, "has failed", "have failed"},
		{holdfast.OnCancelled, "is cancelled", "are cancelled"}, {holdfast.OnEnded, "has ended", "have ended"},
	} {
		var names []string
		verb := end.one
		for _, wait := range n.Waits {
			if wait.On != end.on {
				continue
			}
			other := g.Nodes[wait.Node]
			name := other.Name()
			if other.Members.Total > 1 {
				name = fmt.Sprintf("all %d %s", other.Members.Total, name)
			}
			if names = append(names, name); len(names) > 1 || other.Members.Total > 1 {
				verb = end.many
			}
		}
		if len(names) > 0 {
			all = append(all, strings.Join(names, ", ")+" "+verb)
		}
	}
	return orDash(strings.Join(all, "; "))
}
