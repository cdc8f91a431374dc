package detect

import (
	"math"

	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

// A recipient is named if its correlation is at least NamedFrom standard deviations above that of a recipient who has nothing to do with the clip, and if the chance of that for
// any of the recipients, at any of the places that were examined, is at most NamedChance.
const (
	NamedFrom   = 7.0
	NamedChance = 1e-4
)

// A Finding is how well the codewords of one recipient fit.
type Finding struct {
	Token  string
	Z      float64 // the correlation, in standard deviations of that of an innocent recipient
	Chance float64 // an upper bound of the probability that any innocent recipient reaches this, with all that was tried
	offset int
}

// A Report is the result of a search.
type Report struct {
	Pictures     int
	Candidates   int
	Scales       int // scales at which the pilot was looked for
	Places       int // places at which the recipients were compared
	Correlations int

	Pilot       float64 // the height of the pilot's peak, in standard deviations
	ScaleX      float64 // of the copy in comparison with the original, along the sides of the original
	ScaleY      float64
	Orientation Orientation

	Findings []Finding           // the best recipients, best first; at most MostFindings
	Read     [mark.Chips]float32 // what was read of the tile, for the evidence
	Expected [mark.Chips]int8    // the tile of the best recipient
}

// MostFindings is the length of the list of findings.
const MostFindings = 50

// Named returns the recipients that are identified, best first. Several are if copies were mixed.
func (r *Report) Named() []Finding {
	n := 0
	for n < len(r.Findings) && r.Findings[n].Z >= NamedFrom && r.Findings[n].Chance <= NamedChance {
		n++
	}
	return r.Findings[:n]
}

// Found reports whether a recipient is identified.
func (r *Report) Found() bool { return len(r.Named()) > 0 }

// keep makes a result the best one.
func (r *Report) keep(h *hunt, at peak, readings []reading, findings []Finding) {
	r.Pilot, r.Orientation = at.z, orientation(at.orient)
	tile := h.tile()
	r.ScaleX, r.ScaleY = at.period.x/tile.x/h.reduced, at.period.y/tile.y/h.reduced
	if r.Orientation.Swap {
		r.ScaleX, r.ScaleY = r.ScaleY, r.ScaleX
	}
	r.Findings = append([]Finding(nil), findings[:min(len(findings), MostFindings)]...)
	for i := range r.Findings {
		r.Findings[i].Chance = chance(r.Findings[i].Z, r.Correlations+r.Candidates*binCount)
	}
	words := h.campaign.Key.Codewords(findings[0].Token)
	phase := phaseOf(readings[0].bin, findings[0].offset)
	r.Expected = h.layout.Tile(&words, phase)
	r.Read = [mark.Chips]float32{}
	for i := range readings {
		if phaseOf(readings[i].bin, findings[0].offset) != phase {
			continue
		}
		for c, place := range h.layout.Data {
			r.Read[place] += readings[i].chips[c]
		}
	}
}

// chance bounds the probability that one of some correlations of random signs exceeds z (Hoeffding's inequality, for each of them).
func chance(z float64, correlations int) float64 {
	if z <= 0 {
		return 1
	}
	return min(1, float64(correlations)*math.Exp(-z*z/2))
}
