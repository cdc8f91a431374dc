package policy

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
)

// A backoffSpec is a backoff as it is written in a file.
type backoffSpec struct {
	shape              string
	base, cap, delay   time.Duration
	factor             int
	delays             []time.Duration
	jitter             failure.Jitter
	given              []string // names of the settings that are given
	hasDelay, hasTable bool
}

// shapes lists the settings of each shape of backoff, besides shape and jitter.
var shapes = map[string][]string{
	"exponential": {"base", "factor", "cap"},
	"fixed":       {"delay"},
	"table":       {"delays"},
}

// backoff reads a backoff.
func backoff(to *failure.Backoff) func(*reader, place) {
	return func(r *reader, at place) {
		var w backoffSpec
		before := len(r.mistakes)
		words := []key{
			{"shape", func(r *reader, at place) { r.shape(at, &w) }},
			{"base", span(&w.base)},
			{"factor", count(&w.factor, 1, 1000)},
			{"cap", span(&w.cap)},
			{"delay", func(r *reader, at place) { w.delay, w.hasDelay = r.duration(at) }},
			{"delays", func(r *reader, at place) { r.delays(at, &w) }},
			{"jitter", func(r *reader, at place) { r.jitter(at, &w.jitter) }},
		}
		for i, word := range words {
			words[i].read = func(r *reader, at place) {
				w.given = append(w.given, word.name)
				word.read(r, at)
			}
		}
		r.object(at, words)
		if len(r.mistakes) == before {
			r.checkShape(at, &w)
			*to = w.backoff()
		}
	}
}

func (r *reader) shape(at place, w *backoffSpec) {
	text, ok := r.scalar(at, "exponential, fixed or table")
	if ok && shapes[text] == nil {
		r.wrong(at, "%.40q is not a shape; use exponential, fixed or table", text)
	}
	w.shape = text
}

func (r *reader) delays(at place, w *backoffSpec) {
	r.sequence(at, func(at place) {
		d, _ := r.duration(at)
		w.delays = append(w.delays, d)
	})
	w.hasTable = true
}

// jitter reads 20%, full, or a duration that is added at most.
func (r *reader) jitter(at place, j *failure.Jitter) {
	text, ok := r.scalar(at, "jitter such as 20%, full or 5s")
	switch {
	case !ok:
	case text == "full":
		j.Full = true
	case strings.HasSuffix(text, "%") || !strings.ContainsAny(text, "nuµmshd"):
		n, ok := r.percentage(at)
		if j.Percent = int(math.Round(n * 100)); ok && j.Percent < 1 {
			r.wrong(at, "less than 1%%: give whole percents")
		}
	default:
		span(&j.Plus)(r, at)
	}
}

// checkShape determines the shape if it is not given, and refuses settings of another shape.
func (r *reader) checkShape(at place, w *backoffSpec) {
	if w.shape == "" {
		switch {
		case w.hasTable:
			w.shape = "table"
		case w.hasDelay:
			w.shape = "fixed"
		default:
			w.shape = "exponential"
		}
	}
	for _, word := range w.given {
		if word != "shape" && word != "jitter" && !slices.Contains(shapes[w.shape], word) {
			r.wrong(at, "%s cannot be used with shape %s, which takes %s", word, w.shape, list(shapes[w.shape]))
		}
	}
	switch {
	case w.shape == "fixed" && !w.hasDelay:
		r.wrong(at, "no delay: add one, such as delay: 30s")
	case w.shape == "table" && !w.hasTable:
		r.wrong(at, "no delays: add them, such as delays: [5s, 15s, 45s]")
	case w.base > 0 && w.cap > 0 && w.base > w.cap:
		r.wrong(at, "base %v is longer than cap %v", w.base, w.cap)
	}
}

func (w *backoffSpec) backoff() failure.Backoff {
	var b failure.Backoff
	switch w.shape {
	case "fixed":
		b = failure.Fixed(w.delay)
	case "table":
		b = failure.Table(w.delays)
	default:
		return failure.Exponential{Base: w.base, Factor: w.factor, Cap: w.cap, Jitter: w.jitter}
	}
	if w.jitter != (failure.Jitter{}) {
		return failure.Spread{Of: b, Jitter: w.jitter}
	}
	return b
}
