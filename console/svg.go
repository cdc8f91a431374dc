package console

import (
	"fmt"
	"html/template"
	"strings"
)

// A drawing builds an SVG picture. Colours are CSS classes, so that both themes work and pages contain no inline style.
type drawing struct {
	out    strings.Builder
	width  float64
	height float64
}

// draw starts a picture that scales with its container. Without a label it is hidden from screen readers; then the page has its numbers as text.
func draw(class string, width, height float64, label string) *drawing {
	d := &drawing{width: width, height: height}
	hidden := `aria-hidden="true"`
	if label != "" {
		hidden = `role="img" aria-label="` + template.HTMLEscapeString(label) + `"`
	}
	fmt.Fprintf(&d.out, `<svg class="%s" viewBox="0 0 %g %g" preserveAspectRatio="none" %s focusable="false">`, class, width, height, hidden)
	return d
}

// rect draws a box, with a tooltip if words is not empty.
func (d *drawing) rect(class string, box [4]float64, words string) {
	fmt.Fprintf(&d.out, `<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"`, class, box[0], box[1], box[2], box[3])
	if words == "" {
		d.out.WriteString("/>")
		return
	}
	fmt.Fprintf(&d.out, "><title>%s</title></rect>", template.HTMLEscapeString(words))
}

// line draws a line.
func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.out, `<line class="%s" x1="%.2f" y1="%.2f" x2="%.2f" y2="%.2f"/>`, class, x1, y1, x2, y2)
}

// text draws a text.
func (d *drawing) text(class string, x, y float64, words string) {
	fmt.Fprintf(&d.out, `<text class="%s" x="%.2f" y="%.2f">%s</text>`, class, x, y, template.HTMLEscapeString(words))
}

// done ends the picture and returns it.
func (d *drawing) done() template.HTML {
	d.out.WriteString("</svg>")
	return template.HTML(d.out.String())
}

// spark draws numbers as a row of small bars, the oldest first. The page has the numbers as text.
func spark(numbers []int) template.HTML {
	const width, height = 96, 24
	d := draw("spark", width, height, "")
	top := 1
	for _, n := range numbers {
		top = max(top, n)
	}
	step := float64(width) / float64(max(len(numbers), 1))
	for i, n := range numbers {
		class, tall := "spark-bar", float64(n)/float64(top)*(height-2)
		if n == 0 {
			class, tall = "spark-none", 1
		}
		d.rect(class, [4]float64{float64(i) * step, height - max(tall, 1), max(step-1, 0.6), max(tall, 1)}, "")
	}
	return d.done()
}

// A part is a share of a whole: its size, its colour (good, hold, bad, accent, none) and its label.
type part struct {
	Size  int
	Tone  string
	Words string
}

// parts draws the parts of a whole side by side. The page has the numbers as text.
func parts(all []part) template.HTML {
	const width, height = 400, 8
	d, whole, x := draw("parts", width, height, ""), 0, 0.0
	for _, one := range all {
		whole += one.Size
	}
	for _, one := range all {
		if one.Size <= 0 {
			continue
		}
		wide := max(float64(one.Size)/float64(whole)*width, 2)
		d.rect("chart-"+one.Tone, [4]float64{x, 0, wide, height}, one.Words)
		x += wide
	}
	return d.done()
}
