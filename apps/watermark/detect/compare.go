package detect

import (
	"math"
	"slices"

	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

const clipChip = 2.5 // standard deviations of what is read at one chip

// A reading is what was read at the data chips in one bin of time.
type reading struct {
	bin   int
	chips [mark.CodeSize]float32
}

// compare compares all recipients with what is read when the pilot is at a place, and keeps the result if it is the best so far.
func (h *hunt) compare(at peak) {
	readings := h.read(at)
	if len(readings) == 0 {
		return
	}
	h.report.Places++
	lengths := h.lengths(readings)
	findings := make([]Finding, len(h.campaign.Tokens))
	dots := make([][mark.Phases]float32, len(readings))
	tables := make([]*table, len(readings))
	for i := range readings {
		tables[i] = newTable(&readings[i].chips)
	}
	for n, token := range h.campaign.Tokens {
		words := h.campaign.Key.Codewords(token)
		for i := range readings {
			for phase := range mark.Phases {
				dots[i][phase] = tables[i].dot(&words[phase])
			}
		}
		findings[n] = Finding{Token: token, Z: math.Inf(-1)}
		for offset, length := range lengths {
			sum := float32(0)
			for i := range readings {
				sum += dots[i][phaseOf(readings[i].bin, offset)]
			}
			if z := float64(sum) / length; z > findings[n].Z {
				findings[n].Z, findings[n].offset = z, offset
			}
		}
	}
	h.report.Correlations += len(findings) * len(lengths)
	slices.SortFunc(findings, func(a, b Finding) int {
		if a.Z > b.Z {
			return -1
		}
		return 1
	})
	if len(findings) > 0 && (len(h.report.Findings) == 0 || findings[0].Z > h.report.Findings[0].Z) {
		h.report.keep(h, at, readings, findings)
	}
}

// phaseOf returns the codeword that is shown in a bin of a clip that begins offset bins after a repetition of the marks.
func phaseOf(bin, offset int) int { return (bin + offset) % binCount / binsInPhase }

// lengths returns the length of the readings for each offset: the deviation of the sum of a recipient whose codeword is not in them. Its chips are independent of the video.
func (h *hunt) lengths(readings []reading) (list [binCount]float64) {
	for offset := range list {
		var sums [mark.Phases][mark.CodeSize]float32
		for i := range readings {
			sum := &sums[phaseOf(readings[i].bin, offset)]
			for c, v := range readings[i].chips {
				sum[c] += v
			}
		}
		squares := 0.0
		for phase := range sums {
			for _, v := range sums[phase] {
				squares += float64(v) * float64(v)
			}
		}
		list[offset] = math.Sqrt(max(squares, 1e-9))
	}
	return list
}

// read reads the data chips in each bin of time. A bin counts by how well the pilot can be seen in it.
func (h *hunt) read(at peak) (readings []reading) {
	k := h.seekers[0]
	picture := k.scratch(h.width * h.height)
	for _, bin := range h.used() {
		h.mean([]int{bin}, picture)
		k.spectrum(picture, at.period)
		k.shift(at)
		var values [mark.Chips]float32
		for i := range values {
			y, x := 2*(i/mark.Side), 2*(i%mark.Side)
			values[i] = k.pair.Re[y*grid+x] + k.pair.Re[y*grid+x+1] + k.pair.Re[(y+1)*grid+x] + k.pair.Re[(y+1)*grid+x+1]
		}
		if r, ok := h.weigh(&values); ok {
			r.bin = bin
			readings = append(readings, r)
		}
	}
	return readings
}

// weigh selects the data chips, cuts off what stands out, and multiplies them by how well the pilot can be seen.
func (h *hunt) weigh(values *[mark.Chips]float32) (r reading, ok bool) {
	squares, pilot := 0.0, 0.0
	for i, v := range values {
		squares += float64(v) * float64(v)
		pilot += float64(v) * float64(h.layout.Pilot[i])
	}
	deviation := math.Sqrt(squares / mark.Chips)
	if deviation == 0 {
		return r, false
	}
	seen := max(pilot/mark.PilotSize/deviation, 0.02)
	limit, by := float32(clipChip*deviation), float32(seen/deviation)
	for i, place := range h.layout.Data {
		r.chips[i] = min(max(values[place], -limit), limit) * by
	}
	return r, true
}

// scratch returns memory for a picture.
func (k *seeker) scratch(pixels int) []float32 {
	if k.spare == nil {
		k.spare = make([]float32, pixels)
	}
	return k.spare
}

// shift leaves the upright tile of a peak in pair, with its first chip at the origin.
func (k *seeker) shift(at peak) {
	source := k.sources[at.orient]
	for v := range grid {
		for u := range grid {
			sin, cos := math.Sincos(2 * math.Pi * (signed(u)*at.x + signed(v)*at.y) / grid)
			to := frequency(u, v)
			from := source[to]
			re, im := k.tile.Re[from], k.tile.Im[from]
			k.pair.Re[to] = re*float32(cos) - im*float32(sin)
			k.pair.Im[to] = re*float32(sin) + im*float32(cos)
		}
	}
	k.plan.Inverse(k.pair)
}

// signed returns the frequency of a row or column of a spectrum.
func signed(n int) float64 {
	if n >= grid/2 {
		return float64(n - grid)
	}
	return float64(n)
}

// A table has the sums of each eight neighbouring chips for all their signs, so that a codeword is compared in an eighth of the steps.
type table [mark.CodeSize / 8][256]float32

func newTable(chips *[mark.CodeSize]float32) *table {
	t := &table{}
	for group := range t {
		sums := &t[group]
		for i := range 8 {
			sums[0] -= chips[8*group+i]
		}
		for i := range 8 {
			bit := 1 << i
			for low := range bit {
				sums[bit|low] = sums[low] + 2*chips[8*group+i]
			}
		}
	}
	return t
}

// dot returns the sum of the chips with the signs of a codeword.
func (t *table) dot(word *[mark.CodeSize / 64]uint64) (sum float32) {
	for i, bits := range word {
		sums := (*[8][256]float32)(t[8*i:])
		sum += sums[0][bits&255] + sums[1][bits>>8&255] + sums[2][bits>>16&255] + sums[3][bits>>24&255] +
			sums[4][bits>>32&255] + sums[5][bits>>40&255] + sums[6][bits>>48&255] + sums[7][bits>>56]
	}
	return sum
}
