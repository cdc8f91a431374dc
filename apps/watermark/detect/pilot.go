package detect

import (
	"math"
	"slices"

	"github.com/holdfastdev/holdfast/apps/watermark/fourier"
	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

// A peak is a place at which the pilot may be.
type peak struct {
	period period
	orient int
	x, y   float64 // the shift of the tile, in bins
	z      float64 // how far the correlation is above its mean, in standard deviations
}

// A seeker looks for the pilot in one picture. Each goroutine has its own.
type seeker struct {
	plan       *fourier.Plan
	folder     *folder
	picture    []float32
	pilot      fourier.Tile // the conjugate of its spectrum
	tile, pair fourier.Tile
	sources    [orientations][]uint16
	spare      []float32
}

func newSeeker(s *Sum, layout *mark.Layout, picture []float32) *seeker {
	k := &seeker{plan: fourier.NewPlan(grid), folder: newFolder(s.width, s.height), picture: picture}
	k.pilot, k.tile, k.pair = k.plan.NewTile(), k.plan.NewTile(), k.plan.NewTile()
	for place, sign := range layout.Pilot {
		y, x := 2*(place/mark.Side), 2*(place%mark.Side)
		for _, at := range []int{y*grid + x, y*grid + x + 1, (y+1)*grid + x, (y+1)*grid + x + 1} {
			k.pilot.Re[at] = float32(sign)
		}
	}
	k.plan.Forward(k.pilot)
	for i := range k.pilot.Im {
		k.pilot.Im[i] = -k.pilot.Im[i]
	}
	for o := range k.sources {
		k.sources[o] = make([]uint16, grid*grid)
		for v := range grid {
			for u := range grid {
				k.sources[o][frequency(u, v)] = uint16(orientation(o).source(u, v))
			}
		}
	}
	return k
}

// spectrum leaves the whitened spectrum of the folded picture in tile.
func (k *seeker) spectrum(picture []float32, p period) {
	k.folder.fold(picture, p, k.tile)
	k.plan.Forward(k.tile)
	whiten(k.tile)
}

// best returns the highest peak of each of some orientations for a period. The orientations come in pairs, because one transform serves two.
func (k *seeker) best(p period, pairs []int) (peaks []peak) {
	k.spectrum(k.picture, p)
	for _, first := range pairs {
		k.correlate(first)
		for i, surface := range [][]float32{k.pair.Re, k.pair.Im} {
			peaks = append(peaks, highest(surface, 1, peak{period: p, orient: first + i})...)
		}
	}
	return peaks
}

// top returns the highest peaks of one orientation.
func (k *seeker) top(p period, orient, count int) []peak {
	k.spectrum(k.picture, p)
	k.correlate(orient &^ 1)
	surface := k.pair.Re
	if orient&1 != 0 {
		surface = k.pair.Im
	}
	return highest(surface, count, peak{period: p, orient: orient})
}

// correlate leaves the correlations of two orientations with the pilot in the two parts of pair.
func (k *seeker) correlate(first int) {
	a, b := k.sources[first], k.sources[first+1]
	re, im := k.tile.Re, k.tile.Im
	for i := range k.pair.Re {
		pr, pi := k.pilot.Re[i], k.pilot.Im[i]
		ar, ai := re[a[i]], im[a[i]]
		br, bi := re[b[i]], im[b[i]]
		xr, xi := ar*pr-ai*pi, ar*pi+ai*pr
		yr, yi := br*pr-bi*pi, br*pi+bi*pr
		k.pair.Re[i], k.pair.Im[i] = xr-yi, xi+yr
	}
	k.plan.Inverse(k.pair)
}

// highest returns the highest local maxima of a correlation, best first.
func highest(surface []float32, count int, like peak) (peaks []peak) {
	var squares float64
	for _, v := range surface {
		squares += float64(v) * float64(v)
	}
	deviation := math.Sqrt(squares / float64(len(surface))) // the mean is 0: the spectrum has no constant part
	if deviation == 0 {
		return nil
	}
	at := func(x, y int) float32 { return surface[(y&(grid-1))*grid+x&(grid-1)] }
	least := float32(0)
	for y := range grid {
		for x, v := range surface[y*grid : (y+1)*grid] {
			if v <= least || at(x-1, y) > v || at(x+1, y) >= v || at(x, y-1) > v || at(x, y+1) >= v {
				continue
			}
			p := like
			p.z = float64(v) / deviation
			p.x = float64(x) + between(at(x-1, y), v, at(x+1, y))
			p.y = float64(y) + between(at(x, y-1), v, at(x, y+1))
			peaks = append(peaks, p)
			if len(peaks) >= 2*count {
				peaks = sorted(peaks)[:count]
				least = float32(peaks[count-1].z * deviation)
			}
		}
	}
	peaks = sorted(peaks)
	return peaks[:min(count, len(peaks))]
}

func sorted(peaks []peak) []peak {
	slices.SortFunc(peaks, func(a, b peak) int {
		switch {
		case a.z > b.z:
			return -1
		case a.z < b.z:
			return 1
		}
		return 0
	})
	return peaks
}

// between returns where between its neighbours a maximum is, by a parabola through the three.
func between(before, at, after float32) float64 {
	bend := float64(before) - 2*float64(at) + float64(after)
	if bend >= 0 {
		return 0
	}
	return min(max((float64(before)-float64(after))/(2*bend), -0.5), 0.5)
}
