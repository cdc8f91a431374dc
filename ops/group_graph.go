package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A Graph is the members of a group and what they wait for. Members of the same kind that wait for the same members are one node, so that the graph of a
// thousand members that are fetched, parsed and stored has three nodes.
type Graph struct {
	Nodes []GraphNode `json:"nodes"`          // each after the nodes that it waits for
	More  bool        `json:"more,omitempty"` // the group has more members than were read
}

// A GraphNode is one member of a group, or several that are equal.
type GraphNode struct {
	Step    string           `json:"step,omitempty"`
	Kind    string           `json:"kind"`
	Job     holdfast.ID      `json:"job"`     // the member, or the first of several
	Members holdfast.Members `json:"members"` // how many there are, by state
	Layer   int              `json:"layer"`   // 0: it waits for nothing; otherwise one more than the highest layer of those it waits for
	Code    string           `json:"code,omitempty"`
	Waits   []GraphWait      `json:"waits,omitempty"`
}

// Name returns the step name, or else the kind.
func (n GraphNode) Name() string { return cmp.Or(n.Step, n.Kind) }

// A GraphWait says that a node waits for another, by its index in Graph.Nodes.
type GraphWait struct {
	Node int              `json:"node"`
	On   holdfast.Outcome `json:"on"`
}

// GroupGraph returns the graph of a group. It reads the first thousand members.
func (s *Service) GroupGraph(ctx context.Context, id holdfast.ID) (Graph, error) {
	read, err := s.store.GroupGraph(ctx, id)
	return graphOf(read), err
}

// graphOf makes equal members one node, and sorts the nodes by layer.
func graphOf(read store.GroupGraph) Graph {
	b := &graphBuilder{members: read.Members, at: map[holdfast.ID]int{}, nodeOf: map[holdfast.ID]int{}, equal: map[string]int{}}
	for n, member := range read.Members {
		b.at[member.Job] = n
	}
	for _, member := range read.Members {
		b.add(member.Job)
	}
	return Graph{Nodes: sortedByLayer(b.nodes), More: read.More}
}

// A graphBuilder builds a graph, each member after those that it waits for.
type graphBuilder struct {
	members []store.Member
	at      map[holdfast.ID]int // index of each member
	nodeOf  map[holdfast.ID]int // node of each member that was added; -1 while it is being added
	equal   map[string]int      // node of the members with a kind and waits
	nodes   []GraphNode
}

// add adds a member and what it waits for, and returns its node; -1 for a member that was not read.
func (b *graphBuilder) add(id holdfast.ID) int {
	if node, ok := b.nodeOf[id]; ok {
		return node
	}
	index, ok := b.at[id]
	if !ok {
		return -1
	}
	b.nodeOf[id] = -1 // ends a cycle, which only a damaged store has
	member := b.members[index]
	var waits []GraphWait
	layer := 0
	for _, c := range member.When {
		if node := b.add(c.Job); node >= 0 {
			waits = append(waits, GraphWait{node, c.On})
			layer = max(layer, b.nodes[node].Layer+1)
		}
	}
	slices.SortFunc(waits, func(x, y GraphWait) int { return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.On, y.On)) })
	waits = slices.Compact(waits)
	node := b.node(member, waits, layer)
	b.nodeOf[id] = node
	count(&b.nodes[node], member)
	return node
}

// node returns the node of a member: that of equal members, or a new one. A member with a step name has a node of its own.
func (b *graphBuilder) node(member store.Member, waits []GraphWait, layer int) int {
	var key strings.Builder
	fmt.Fprintf(&key, "%q %v", member.Kind, waits)
	if node, ok := b.equal[key.String()]; ok && member.Step == "" {
		return node
	}
	if member.Step == "" {
		b.equal[key.String()] = len(b.nodes)
	}
	b.nodes = append(b.nodes, GraphNode{Step: member.Step, Kind: member.Kind, Job: member.Job, Layer: layer, Waits: waits})
	return len(b.nodes) - 1
}

// count counts a member in its node.
func count(n *GraphNode, member store.Member) {
	m := &n.Members
	m.Total++
	switch {
	case member.Skipped:
		m.Skipped++
	case member.Waiting:
		m.Waiting++
	case member.State == holdfast.Processing:
		m.Processing++
	case member.State == holdfast.Complete:
		m.Complete++
	case member.State == holdfast.Failed:
		m.Failed++
		n.Code = cmp.Or(n.Code, member.Code)
	case member.State == holdfast.Cancelled:
		m.Cancelled++
	default:
		m.Queued++
	}
}

// sortedByLayer sorts the nodes by layer, in a layer as they were added, and renumbers the waits.
func sortedByLayer(nodes []GraphNode) []GraphNode {
	order := make([]int, len(nodes)) // old indexes in the new order
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(nodes[x].Layer, nodes[y].Layer) })
	place := make([]int, len(nodes)) // new index of each old one
	sorted := make([]GraphNode, len(nodes))
	for to, from := range order {
		place[from], sorted[to] = to, nodes[from]
	}
	for _, node := range sorted {
		for i := range node.Waits {
			node.Waits[i].Node = place[node.Waits[i].Node]
		}
		slices.SortFunc(node.Waits, func(x, y GraphWait) int { return cmp.Compare(x.Node, y.Node) })
	}
	return sorted
}
