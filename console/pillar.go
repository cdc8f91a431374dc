package console

import "html/template"

// A pillar is one column of a chart whose columns have names: what it says stands above it, what it is called below.
type pillar struct {
	Name    string
	Value   string
	Note    string
	Words   string // the same for those who do not see it
	Picture template.HTML
}

// A pillarPart is a piece of a pillar, from the ground up: its colour and its part of the whole height.
type pillarPart struct {
	class string
	high  float64
}

// draw puts pieces upon each other. With room, the rest of the height is drawn too.
func (p *pillar) draw(pieces []pillarPart, room bool) {
	const wide, tall = 10, 100
	d := draw("pillar", wide, tall, "")
	if room {
		d.rect("chart-none", [4]float64{0, 0, wide, tall}, "")
	}
	ground := float64(tall)
	for _, piece := range pieces {
		high := piece.high * tall
		if piece.high > 0 {
			high = max(high, 1)
		}
		ground -= high
		d.rect(piece.class, [4]float64{0, ground, wide, high}, "")
	}
	p.Picture = d.done()
}
