package console

import (
	"fmt"
	"html/template"
	"strings"
)

// A drawing is an SVG picture in the making. Colours are classes of the style sheet, so that both themes work and no style is written in pages.
type drawing struct {
	out    strings.Builder
	width  float64
	height float64
}

// draw begins a picture that scales with its place. Without a label it is decoration: its figures stand beside it.
func draw(class string, width, height float64, label string) *drawing {
	d := &drawing{width: width, height: height}
	hidden := `aria-hidden="true"`
	if label != "" {
		hidden = `role="img" aria-label="` + template.HTMLEscapeString(label) + `"`
	}
	fmt.Fprintf(&d.out, `<svg class="%s" viewBox="0 0 %g %g" preserveAspectRatio="none" %s focusable="false">`, class, width, height, hidden)
	return d
}

// rect draws a box, with words to be looked at when there are some.
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

// text writes words.
func (d *drawing) text(class string, x, y float64, words string) {
	fmt.Fprintf(&d.out, `<text class="%s" x="%.2f" y="%.2f">%s</text>`, class, x, y, template.HTMLEscapeString(words))
}

// done closes the picture.
func (d *drawing) done() template.HTML {
	d.out.WriteString("</svg>")
	return template.HTML(d.out.String())
}

// spark draws numbers as a row of small bars, the oldest first. Its figures stand beside it.
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

// A part is a piece of a whole: how many, its colour (good, hold, bad, accent, none) and what it is.
type part struct {
	Size  int
	Tone  string
	Words string
}

// parts draws pieces of a whole side by side. The figures stand beside it.
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
