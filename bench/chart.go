package main

import (
	"fmt"
	"html"
	"strings"
)

// A chart is groups of horizontal bars on one scale that begins at zero.
type chart struct {
	title  string
	note   string
	legend []string // the names of the two parts of a bar, if there are two
	groups []group
}

type group struct {
	name string
	bars []bar
}

// A bar consists of its parts, one after the other. A bar with cut set does not determine the scale: it may be cut off.
type bar struct {
	label string
	text  string
	parts []float64
	low   float64
	high  float64
	ours  bool
	cut   bool
}

func (b bar) sum() (sum float64) {
	for _, p := range b.parts {
		sum += p
	}
	return sum
}

// The layout, in pixels.
const (
	width     = 800.0
	margin    = 28.0
	labels    = 214.0 // start of the bars
	longestPx = 450.0 // length of the longest bar
	rowPx     = 27.0
	barPx     = 17.0
	headPx    = 84.0
	groupPx   = 38.0
)

// style has one accent colour for Holdfast and greys for the others, in a light and a dark theme.
const style = `<style>
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; font-size: 13px; fill: #374151 }
.card { fill: #ffffff; stroke: #e5e7eb }
.title { font-size: 19px; font-weight: 650; fill: #111827 }
.note { font-size: 12px; fill: #6b7280 }
.group { font-size: 12px; font-weight: 650; fill: #6b7280; letter-spacing: .04em }
.mine { font-weight: 650; fill: #0f766e }
.value { font-size: 12.5px; font-variant-numeric: tabular-nums }
.ours0 { fill: #0d9488 } .ours1 { fill: #7dd3c8 }
.peer0 { fill: #9ca3af } .peer1 { fill: #d7dade }
.axis { stroke: #d1d5db } .spread { stroke: #111827; stroke-opacity: .55; stroke-width: 1.5 } .gap { fill: #ffffff }
@media (prefers-color-scheme: dark) {
text { fill: #d1d5db }
.card { fill: #0d1117; stroke: #30363d }
.title { fill: #f3f4f6 } .note, .group { fill: #9ca3af }
.mine { fill: #5eead4 }
.ours0 { fill: #14b8a6 } .ours1 { fill: #115e56 }
.peer0 { fill: #6b7280 } .peer1 { fill: #3b424d }
.axis { stroke: #4b5563 } .spread { stroke: #f9fafb; stroke-opacity: .6 } .gap { fill: #0d1117 }
}
</style>
`

// draw returns the chart as SVG.
func (c chart) draw() string {
	height := headPx + margin - 8
	for _, g := range c.groups {
		height += groupPx + rowPx*float64(len(g.bars))
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n", width, height, width, height, html.EscapeString(c.title))
	s.WriteString(style)
	fmt.Fprintf(&s, `<rect class="card" x="0.5" y="0.5" width="%.0f" height="%.0f" rx="10"/>`+"\n", width-1, height-1)
	write(&s, "title", margin, 40, c.title)
	write(&s, "note", margin, 62, c.note)
	c.drawLegend(&s)
	scale := longestPx / c.longest()
	y := headPx
	for _, g := range c.groups {
		write(&s, "group", margin, y+groupPx-13, g.name)
		y += groupPx
		fmt.Fprintf(&s, `<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", labels-0.5, labels-0.5, y-3, y+rowPx*float64(len(g.bars))-3)
		for _, b := range g.bars {
			b.draw(&s, y, scale)
			y += rowPx
		}
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func write(s *strings.Builder, class string, x, y float64, text string) {
	fmt.Fprintf(s, `<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, html.EscapeString(text))
}

// drawLegend draws the legend at the top right: one square of each colour for each part.
func (c chart) drawLegend(s *strings.Builder) {
	x := width - margin
	for i := len(c.legend) - 1; i >= 0; i-- {
		x -= 7*float64(len(c.legend[i])) + 6
		write(s, "note", x, 40, c.legend[i])
		for _, who := range []string{"peer", "ours"} {
			x -= 15
			fmt.Fprintf(s, `<rect class="%s%d" x="%.1f" y="30" width="11" height="11" rx="2"/>`+"\n", who, i, x)
		}
		x -= 18
	}
}

func (c chart) longest() float64 {
	most := 0.0
	for _, g := range c.groups {
		for _, b := range g.bars {
			if !b.cut {
				most = max(most, b.sum(), b.high)
			}
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

func (b bar) draw(s *strings.Builder, y, scale float64) {
	who, class := "peer", "label"
	if b.ours {
		who, class = "ours", "mine"
	}
	write(s, class, margin, y+barPx-4, b.label)
	x, end := labels, labels+longestPx
	for i, p := range b.parts {
		long := min(max(p*scale, 1), end-x)
		fmt.Fprintf(s, `<rect class="%s%d" x="%.1f" y="%.1f" width="%.1f" height="%.0f" rx="2"/>`+"\n", who, i, x, y, long, barPx)
		x += long
	}
	if b.cut && b.sum()*scale > longestPx {
		fmt.Fprintf(s, `<path class="gap" d="M%.1f %.1fl8 -%.0fh5l-8 %.0fz"/>`+"\n", end-26, y+barPx+1, barPx+2, barPx+2)
	}
	if b.high > b.low && !b.cut {
		fmt.Fprintf(s, `<line class="spread" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", labels+b.low*scale, labels+b.high*scale, y+barPx/2, y+barPx/2)
		x = max(x, labels+b.high*scale)
	}
	write(s, "value "+class, x+8, y+barPx-4, b.text)
}
