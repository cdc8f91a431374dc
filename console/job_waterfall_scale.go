package console

import (
	"slices"
	"time"
)

// A scale maps times to horizontal positions. It is linear, except that idle periods much longer than all the rest together are drawn shorter and marked.
type scale struct {
	marks  []time.Time // boundaries of the segments, in order
	places []float64   // position of each mark, from 0 to 1
	short  []bool      // the period that begins at the mark is drawn shorter
}

// shortenFactor: an idle period is drawn shorter if it is longer than this many times all the rest.
const shortenFactor = 12

// newScale returns the scale for segments of time.
func newScale(pieces []segment) scale {
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
		idle[i] = !slices.ContainsFunc(pieces, func(p segment) bool {
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

// shorten reduces idle widths that are much larger than all others together to the width of those, and reports which.
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
		if rest <= 0 || widths[largest] <= shortenFactor*rest {
			break
		}
		widths[largest], short[largest] = rest, true
	}
	return short
}

// place returns the position of a time, from 0 to 1.
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

// instant returns the time at a position. It is the inverse of place.
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

// breaks returns the positions in a segment where time is drawn shorter.
func (s scale) breaks(piece segment) (all []float64) {
	for i := 0; i+1 < len(s.marks); i++ {
		if s.short[i] && !s.marks[i].Before(piece.from) && !s.marks[i+1].After(piece.to) {
			all = append(all, (s.places[i]+s.places[i+1])/2)
		}
	}
	return all
}

// labelCount is the number of intervals between the labels under a waterfall.
const labelCount = 4

// draw draws all rows to one scale.
func (w *waterfall) draw() {
	var pieces []segment
	for _, row := range w.Rows {
		pieces = append(pieces, row.pieces...)
	}
	s := newScale(pieces)
	w.Short = slices.Contains(s.short, true)
	if len(s.marks) >= 2 {
		w.Total = s.marks[len(s.marks)-1].Sub(s.marks[0])
		w.Marks = s.labels()
	}
	for i := range w.Rows {
		w.Rows[i].Picture = s.row(w.Rows[i].pieces).done()
	}
	for _, tone := range waterfallTones {
		if slices.ContainsFunc(pieces, func(p segment) bool { return p.tone == tone.Class }) {
			w.Legend = append(w.Legend, tone)
		}
	}
}

// A waterfallTone is a CSS class for a kind of time, with its legend.
type waterfallTone struct{ Class, Words string }

var waterfallTones = []waterfallTone{
	{"wait", "waited"}, {"later", "backoff or scheduled"}, {"ahead", "still to wait"}, {"held", "held by a breaker"}, {"over", "ended, until it was retried"},
	{"busy", "running"}, {"good", "complete"}, {"bad", "failed"}, {"back", "released"},
}

// labels returns the labels under the rows: the time since the start. A label equal to the one before it is left empty.
func (s scale) labels() (all []string) {
	last := ""
	for i := range labelCount + 1 {
		label := formatDuration(s.instant(float64(i) / labelCount).Sub(s.marks[0]))
		if label == last {
			label = ""
		} else {
			last = label
		}
		all = append(all, label)
	}
	return all
}

// row draws the segments of one row. Segments too short to be visible get a minimum width.
func (s scale) row(pieces []segment) *drawing {
	const width, height, least = 1000, 20, 5
	d := draw("waterfall-picture", width, height, "")
	for i := range labelCount + 1 {
		x := float64(i) / labelCount * width
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
		d.rect("waterfall-"+piece.tone, box, piece.words+" "+formatDuration(piece.took()))
		for _, at := range s.breaks(piece) {
			at *= width
			d.rect("waterfall-gap", [4]float64{at - 6, 4, 12, 12}, "")
			d.line("waterfall-break", at-9, 16, at-3, 4)
			d.line("waterfall-break", at+3, 16, at+9, 4)
		}
	}
	return d
}
