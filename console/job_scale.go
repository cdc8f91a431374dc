package console

import (
	"slices"
	"time"
)

// A scale places instants side by side. It is linear, but for idle spans that dwarf everything else: those are drawn shorter, and marked.
type scale struct {
	marks  []time.Time // boundaries, in order
	places []float64   // where each is drawn, from 0 to 1
	short  []bool      // the span that begins at the mark is shortened
}

// dwarfs is from how many times the rest on an idle span is shortened.
const dwarfs = 12

// scaled makes a scale for pieces of time.
func scaled(pieces []stretch) scale {
	var s scale
	for _, piece := range pieces {
		s.marks = append(s.marks, piece.from, later(piece.from, piece.to))
	}
	slices.SortFunc(s.marks, time.Time.Compare)
	s.marks = slices.CompactFunc(s.marks, time.Time.Equal)
	if len(s.marks) < 2 {
		s.places, s.short = make([]float64, len(s.marks)), make([]bool, len(s.marks))
		return s
	}
	widths := make([]float64, len(s.marks)-1)
	idle := make([]bool, len(widths))
	for i := range widths {
		widths[i] = float64(s.marks[i+1].Sub(s.marks[i]))
		idle[i] = !slices.ContainsFunc(pieces, func(p stretch) bool {
			return p.busy() && p.from.Before(s.marks[i+1]) && p.to.After(s.marks[i])
		})
	}
	s.short = shorten(widths, idle)
	s.places = make([]float64, len(s.marks))
	whole := 0.0
	for i, wide := range widths {
		whole += wide
		s.places[i+1] = whole
	}
	for i := range s.places {
		s.places[i] /= whole
	}
	return s
}

// shorten makes idle widths that dwarf all others together as wide as those, and tells which.
func shorten(widths []float64, idle []bool) []bool {
	short := make([]bool, len(widths)+1)
	for range widths {
		largest, whole := -1, 0.0
		for i, wide := range widths {
			whole += wide
			if idle[i] && !short[i] && (largest < 0 || wide > widths[largest]) {
				largest = i
			}
		}
		if largest < 0 {
			break
		}
		rest := whole - widths[largest]
		if rest <= 0 || widths[largest] <= dwarfs*rest {
			break
		}
		widths[largest], short[largest] = rest, true
	}
	return short
}

// place is where an instant is drawn, from 0 to 1.
func (s scale) place(at time.Time) float64 {
	if len(s.marks) < 2 {
		return 0
	}
	i, found := slices.BinarySearchFunc(s.marks, at, time.Time.Compare)
	switch {
	case found:
		return s.places[i]
	case i == 0:
		return 0
	case i == len(s.marks):
		return 1
	}
	part := float64(at.Sub(s.marks[i-1])) / float64(s.marks[i].Sub(s.marks[i-1]))
	return s.places[i-1] + part*(s.places[i]-s.places[i-1])
}

// instant is which one is drawn at a place.
func (s scale) instant(place float64) time.Time {
	if len(s.marks) < 2 {
		return time.Time{}
	}
	for i := 1; i < len(s.places); i++ {
		if wide := s.places[i] - s.places[i-1]; place <= s.places[i] && wide > 0 {
			part := (place - s.places[i-1]) / wide
			return s.marks[i-1].Add(time.Duration(part * float64(s.marks[i].Sub(s.marks[i-1]))))
		}
	}
	return s.marks[len(s.marks)-1]
}

// breaks are the places in a piece where time is drawn shorter.
func (s scale) breaks(piece stretch) (all []float64) {
	for i := 0; i+1 < len(s.marks); i++ {
		if s.short[i] && !s.marks[i].Before(piece.from) && !s.marks[i+1].After(piece.to) {
			all = append(all, (s.places[i]+s.places[i+1])/2)
		}
	}
	return all
}

// marked is how many labels stand under a waterfall.
const marked = 4

// draw draws the rows to one scale.
func (w *waterfall) draw() {
	var pieces []stretch
	for _, row := range w.Bouts {
		pieces = append(pieces, row.pieces...)
	}
	s := scaled(pieces)
	w.Short = slices.Contains(s.short, true)
	if len(s.marks) >= 2 {
		w.Total = s.marks[len(s.marks)-1].Sub(s.marks[0])
		w.Marks = s.labels()
	}
	for i := range w.Bouts {
		w.Bouts[i].Picture = s.row(w.Bouts[i].pieces).done()
	}
	for _, tone := range waterTones {
		if slices.ContainsFunc(pieces, func(p stretch) bool { return p.tone == tone.Class }) {
			w.Legend = append(w.Legend, tone)
		}
	}
}

// A waterTone is how a sort of time is drawn, and what it is.
type waterTone struct{ Class, Words string }

var waterTones = []waterTone{
	{"wait", "waited"}, {"later", "backoff or scheduled"}, {"ahead", "still to wait"}, {"held", "held by a breaker"}, {"over", "ended, until it was sent round again"},
	{"busy", "running"}, {"good", "complete"}, {"bad", "failed"}, {"back", "handed back"},
}

// labels stand under the rows: how long after the beginning. A label that would say what its neighbour says is left empty.
func (s scale) labels() (all []string) {
	last := ""
	for i := range marked + 1 {
		label := took(s.instant(float64(i) / marked).Sub(s.marks[0]))
		if label == last {
			label = ""
		} else {
			last = label
		}
		all = append(all, label)
	}
	return all
}

// row draws the pieces of one row. What was too short to be seen is drawn as wide as a mark.
func (s scale) row(pieces []stretch) *drawing {
	const width, height, least = 1000, 20, 5
	d := draw("waterfall", width, height, "")
	for i := range marked + 1 {
		x := float64(i) / marked * width
		d.line("chart-rule", x, 0, x, height)
	}
	for _, piece := range pieces {
		x := s.place(piece.from) * width
		wide := max(s.place(piece.to)*width-x, least)
		x = min(x, width-wide)
		box := [4]float64{x, 7, wide, 6}
		if piece.busy() {
			box[1], box[3] = 2, 16
		}
		d.rect("water-"+piece.tone, box, piece.words+" "+took(piece.took()))
		for _, at := range s.breaks(piece) {
			at *= width
			d.rect("water-gap", [4]float64{at - 6, 4, 12, 12}, "")
			d.line("water-break", at-9, 16, at-3, 4)
			d.line("water-break", at+3, 16, at+9, 4)
		}
	}
	return d
}
