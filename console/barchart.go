package console

import "html/template"

// A chartBar is one bar of a bar chart, with its value above and its name below.
type chartBar struct {
	Name    string
	Value   string
	Note    string
	Words   string // tooltip
	Picture template.HTML
}

// A barSegment is a part of a bar, from the bottom up: its CSS class and its share of the full height.
type barSegment struct {
	class  string
	height float64
}

// draw stacks the segments. With background, the rest of the full height is drawn too.
func (p *chartBar) draw(segments []barSegment, background bool) {
	const wide, tall = 10, 100
	d := draw("bar-chart-bar", wide, tall, "")
	if background {
		d.rect("chart-none", [4]float64{0, 0, wide, tall}, "")
	}
	y := float64(tall)
	for _, one := range segments {
		height := one.height * tall
		if one.height > 0 {
			height = max(height, 1)
		}
		y -= height
		d.rect(one.class, [4]float64{0, y, wide, height}, "")
	}
	p.Picture = d.done()
}
