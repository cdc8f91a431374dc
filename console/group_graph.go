package console

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A graphPicture is the graph of a group as its page shows it.
type graphPicture struct {
	Picture template.HTML
	Legend  []graphLegend
	Note    string // what the picture leaves out
}

// A graphLegend explains a kind of line.
type graphLegend struct{ Class, Words string }

// Sizes of the picture, in pixels. It is as large as its nodes need, and its container scrolls.
const (
	maxGraphNodes = 60
	nodeWidth     = 196.0
	nodeHeight    = 54.0
	layerGap      = 56.0
	rowGap        = 16.0
	nodeChars     = 19 // of a name; a wide character counts twice
)

// drawGraph draws the graph of a group: a column for each layer, from left to right. A group in which no member waits for another has no picture.
func drawGraph(q *request, id holdfast.ID, g ops.Graph) graphPicture {
	var picture graphPicture
	if !slices.ContainsFunc(g.Nodes, func(n ops.GraphNode) bool { return len(n.Waits) > 0 }) {
		return picture
	}
	switch {
	case len(g.Nodes) > maxGraphNodes:
		picture.Note = fmt.Sprintf("The picture shows the first %d of %s steps. The command holdfast groups graph %s prints all.", maxGraphNodes, num(len(g.Nodes)), id)
		g.Nodes = g.Nodes[:maxGraphNodes] // sorted by layer: each stays after those that it waits for
	case g.More:
		picture.Note = "The picture shows the first thousand members."
	}
	l := layGraph(g.Nodes)
	d := &drawing{}
	width, height := float64(len(l.columns))*(nodeWidth+layerGap)-layerGap, float64(l.rows)*(nodeHeight+rowGap)-rowGap
	fmt.Fprintf(&d.out, `<svg class="graph" width="%.0f" height="%.0f" viewBox="-1 -1 %.0f %.0f" role="group" aria-label="Members and what they wait for">`, width+2, height+2, width+2, height+2)
	used := map[holdfast.Outcome]bool{}
	for n, node := range g.Nodes {
		for i, wait := range node.Waits {
			used[wait.On] = true
			d.wait(l.path(n, i), wait.On)
		}
	}
	for n, node := range g.Nodes {
		d.node(q, l.at(n), node, id)
	}
	picture.Picture = d.done()
	for _, one := range []struct {
		on    holdfast.Outcome
		words string
	}{{holdfast.OnComplete, "starts when the other is complete"}, {holdfast.OnFailed, "starts when the other failed"}, {holdfast.OnCancelled, "starts when the other was cancelled"}, {holdfast.OnEnded, "starts when the other has ended"}} {
		if used[one.on] {
			picture.Legend = append(picture.Legend, graphLegend{"graph-on-" + string(one.on), one.words})
		}
	}
	return picture
}

// wait draws the line from a member to one that waits for it, through the points.
func (d *drawing) wait(points [][2]float64, on holdfast.Outcome) {
	fmt.Fprintf(&d.out, `<path class="graph-line graph-on-%s" d="M%.1f %.1f`, on, points[0][0], points[0][1])
	for i := 1; i < len(points); i++ {
		from, to := points[i-1], points[i]
		if from[1] == to[1] {
			fmt.Fprintf(&d.out, "H%.1f", to[0])
			continue
		}
		middle := (from[0] + to[0]) / 2
		fmt.Fprintf(&d.out, "C%.1f %.1f %.1f %.1f %.1f %.1f", middle, from[1], middle, to[1], to[0], to[1])
	}
	d.out.WriteString(`"/>`)
	end := points[len(points)-1]
	fmt.Fprintf(&d.out, `<path class="graph-tip graph-on-%s" d="M%.1f %.1fl-8 -4v8z"/>`, on, end[0], end[1])
}

// node draws one node. It is a link to its job, or to the members of its kind.
func (d *drawing) node(q *request, at [2]float64, n ops.GraphNode, group holdfast.ID) {
	to := q.link("/jobs/" + n.Job.String())
	if n.Members.Total > 1 {
		to = q.jobs("group:"+group.String(), queryPart{"kind", n.Kind}.String())
	}
	badge, state, fullState := graphState(n)
	name := n.Name()
	full := fmt.Sprintf("%s, %s", name, fullState)
	if n.Members.Total > 1 {
		name, full = fmt.Sprintf("%s × %s", name, num(n.Members.Total)), fmt.Sprintf("%s × %s, %s", name, num(n.Members.Total), fullState)
	}
	escape := template.HTMLEscapeString
	x, y := at[0], at[1]
	fmt.Fprintf(&d.out, `<a class="graph-node graph-%s" href="%s" aria-label="%s"><title>%s</title>`, badge.Tone, escape(to), escape(full), escape(full))
	fmt.Fprintf(&d.out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="8"/>`, x, y, nodeWidth, nodeHeight)
	fmt.Fprintf(&d.out, `<use href="#shape-%s" x="%.1f" y="%.1f" width="14" height="14"/>`, badge.Shape, x+11, y+11)
	d.text("graph-name", x+32, y+23, fitted(name, nodeChars))
	d.text("graph-state", x+32, y+41, fitted(state, nodeChars+4))
	d.out.WriteString("</a>")
}

// graphState returns the badge of a node, and its states in words: as many as its box can show, and all. In the box of several members their numbers leave no room
// for the failure code.
func graphState(n ops.GraphNode) (badge stateBadge, box, full string) {
	m := n.Members
	var short, long []string
	for _, one := range []struct {
		size  int
		badge stateBadge
	}{
		{m.Failed, stateBadge{"failed", "failed", "failed"}}, {m.Processing, stateBadge{"processing", "processing", "processing"}}, {m.Queued, stateBadge{"queued", "queued", "queued"}},
		{m.Waiting, stateBadge{"waiting", "queued", "queued"}}, {m.Cancelled, stateBadge{"cancelled", "cancelled", "cancelled"}}, {m.Complete, stateBadge{"complete", "complete", "complete"}},
		{m.Skipped, stateBadge{"skipped", "cancelled", "discarded"}},
	} {
		if one.size == 0 {
			continue
		}
		badge = cmp.Or(badge, one.badge)
		text := one.badge.Word
		if m.Total > 1 && one.size < m.Total {
			text = num(one.size) + " " + text
		}
		with := text
		if one.badge.Word == "failed" && n.Code != "" && one.size == 1 {
			with += ", " + n.Code
		}
		if m.Total == 1 {
			text = with
		}
		short, long = append(short, text), append(long, with)
	}
	return badge, strings.Join(short, ", "), strings.Join(long, ", ")
}

// fitted returns a text that is at most so many characters wide.
func fitted(text string, most int) string {
	width := 0
	for at, char := range text {
		if width++; char >= 0x1100 {
			width++
		}
		if width > most {
			return text[:at] + "…"
		}
	}
	return text
}

// A graphLayout places the nodes of a graph: columns of nodes, and of points where a line passes a column.
type graphLayout struct {
	nodes   []ops.GraphNode
	columns [][]graphPoint
	rows    int     // of the longest column
	row     []int   // row of each node
	passes  [][]int // rows where the lines of each node pass columns: those of its first wait, then those of the second, ...
}

// A graphPoint is a place in a column: a node, or a point of the line of a wait.
type graphPoint struct {
	node int
	wait int // -1: the node itself
	pull float64
}

// layGraph places nodes that are sorted by layer. In each column, nodes and lines are ordered by the mean of the rows of what they come from, so that few lines cross.
func layGraph(nodes []ops.GraphNode) *graphLayout {
	l := &graphLayout{nodes: nodes, row: make([]int, len(nodes)), passes: make([][]int, len(nodes))}
	last := 0
	for n, node := range nodes {
		last = max(last, node.Layer)
		l.passes[n] = make([]int, len(node.Waits)*(len(nodes)+1))
	}
	for layer := range last + 1 {
		column := l.column(layer)
		slices.SortStableFunc(column, func(x, y graphPoint) int { return cmp.Compare(x.pull, y.pull) })
		for row, p := range column {
			if p.wait < 0 {
				l.row[p.node] = row
			} else {
				*l.pass(p.node, p.wait, layer) = row
			}
		}
		l.columns = append(l.columns, column)
		l.rows = max(l.rows, len(column))
	}
	return l
}

// column returns the nodes of a layer, and the lines that pass it, each with the mean of the rows from which its lines come.
func (l *graphLayout) column(layer int) (column []graphPoint) {
	for n, node := range l.nodes {
		switch {
		case node.Layer == layer:
			pull := 0.0
			for i := range node.Waits {
				pull += float64(l.before(n, i, layer)) / float64(len(node.Waits))
			}
			column = append(column, graphPoint{n, -1, pull})
		case node.Layer > layer:
			for i, wait := range node.Waits {
				if l.nodes[wait.Node].Layer < layer {
					column = append(column, graphPoint{n, i, float64(l.before(n, i, layer))})
				}
			}
		}
	}
	return column
}

// before returns the row of the line of a wait in the column before a layer.
func (l *graphLayout) before(n, wait, layer int) int {
	from := l.nodes[n].Waits[wait].Node
	if l.nodes[from].Layer == layer-1 {
		return l.row[from]
	}
	return *l.pass(n, wait, layer-1)
}

// pass returns where the line of a wait passes a layer.
func (l *graphLayout) pass(n, wait, layer int) *int {
	return &l.passes[n][wait*(len(l.nodes)+1)+layer]
}

// at returns the upper left corner of a node.
func (l *graphLayout) at(n int) [2]float64 {
	return [2]float64{float64(l.nodes[n].Layer) * (nodeWidth + layerGap), l.top(l.nodes[n].Layer, l.row[n])}
}

// top returns the upper edge of a row in a column. Columns are centred.
func (l *graphLayout) top(layer, row int) float64 {
	free := float64(l.rows-len(l.columns[layer])) * (nodeHeight + rowGap) / 2
	return free + float64(row)*(nodeHeight+rowGap)
}

// path returns the points of the line of a wait, from the node that is waited for to the waiting one.
func (l *graphLayout) path(n, wait int) [][2]float64 {
	from := l.nodes[n].Waits[wait].Node
	start, end := l.at(from), l.at(n)
	points := [][2]float64{{start[0] + nodeWidth, start[1] + nodeHeight/2}}
	for layer := l.nodes[from].Layer + 1; layer < l.nodes[n].Layer; layer++ {
		x, y := float64(layer)*(nodeWidth+layerGap), l.top(layer, *l.pass(n, wait, layer))+nodeHeight/2
		points = append(points, [2]float64{x, y}, [2]float64{x + nodeWidth, y})
	}
	return append(points, [2]float64{end[0], end[1] + nodeHeight/2})
}
