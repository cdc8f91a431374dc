package detect

import (
	"context"
	"math"
	"runtime"
	"sync"

	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

// A Campaign is what a clip is compared with.
type Campaign struct {
	Key           mark.Key
	Width, Height int      // of the pictures that were marked
	Tokens        []string // the ids of its recipients' tokens
}

// Limits of the search for the scale of a copy: how large it may be in comparison with the original, before it is scaled down to be examined.
const (
	smallest = 0.4
	largest  = 1.25
)

// How many places are examined more closely at each step of the search.
const (
	closely  = 8   // scales
	perScale = 6   // places of a scale
	locked   = 7.0 // from this height of its peak on, the pilot is found for certain
)

// Ratios of width to height, in comparison with the original, at which the scale is searched: those that occur when a copy was stretched from 16:9 to 16:10, 4:3 or back.
var stretches = []float64{1, 9.0 / 10, 10.0 / 9, 3.0 / 4, 4.0 / 3}

// Search compares the pictures with a campaign. It returns ctx's error if ctx ends before.
func (s *Sum) Search(ctx context.Context, c Campaign) (*Report, error) {
	layout := c.Key.Layout()
	picture := make([]float32, s.width*s.height)
	s.mean(s.used(), picture)
	h := &hunt{Sum: s, campaign: c, layout: layout, report: &Report{Pictures: s.Pictures(), Candidates: len(c.Tokens)}}
	for range max(1, min(4, runtime.GOMAXPROCS(0))) {
		h.seekers = append(h.seekers, newSeeker(s, layout, picture))
	}
	for _, step := range []func(){
		func() { h.examine(ctx, h.known(), []int{0, 2, 4, 6}) },
		func() { h.examine(ctx, h.scales(stretches[:1]), []int{0, 2, 4, 6}) },
		func() { h.examine(ctx, h.scales(stretches[1:]), []int{0}) }, // upright and mirrored only
	} {
		step()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if h.report.Found() {
			break
		}
	}
	return h.report, nil
}

// A hunt is one search.
type hunt struct {
	*Sum
	campaign Campaign
	layout   *mark.Layout
	seekers  []*seeker
	report   *Report
}

// tile returns the period of a copy that is as large as the original.
func (h *hunt) tile() period {
	side := float64(mark.Side * mark.ChipSize(h.campaign.Width, h.campaign.Height))
	return period{side, side}
}

// known returns the periods of copies that were not cropped, or not scaled.
func (h *hunt) known() (list []period) {
	across, down := float64(h.width)/float64(h.campaign.Width), float64(h.height)/float64(h.campaign.Height)
	acrossDown, downAcross := float64(h.width)/float64(h.campaign.Height), float64(h.height)/float64(h.campaign.Width)
	seen := map[[2]int]bool{}
	for _, scale := range [][2]float64{{across, down}, {across, across}, {down, down}, {h.reduced, h.reduced}, {acrossDown, downAcross}, {acrossDown, acrossDown}, {downAcross, downAcross}} {
		key := [2]int{int(scale[0] * 2000), int(scale[1] * 2000)}
		if !seen[key] && min(scale[0], scale[1]) > smallest/2 && max(scale[0], scale[1]) < 2*largest {
			seen[key] = true
			list = append(list, h.tile().times(scale[0], scale[1]))
		}
	}
	return list
}

// scales returns the periods of copies of every scale, in steps that move the edges of the picture by less than a third of a chip.
func (h *hunt) scales(ratios []float64) (list []period) {
	for _, ratio := range ratios {
		across, down := math.Sqrt(ratio), 1/math.Sqrt(ratio)
		for scale := smallest * h.reduced; scale < largest*max(h.reduced, 0.9); {
			p := h.tile().times(scale*across, scale*down)
			list = append(list, p)
			scale *= 1 + h.step(p)
		}
	}
	return list
}

func (h *hunt) step(p period) float64 {
	return 0.6 * (p.x / mark.Side) / float64(max(h.width, h.height))
}

// examine looks for the pilot at some periods and pairs of orientations, and compares the recipients at the best of them.
func (h *hunt) examine(ctx context.Context, periods []period, pairs []int) {
	peaks := h.spread(ctx, periods, pairs)
	h.report.Scales += len(periods)
	seen := map[[3]int]bool{}
	taken := 0
	for _, p := range peaks {
		key := [3]int{p.orient, int(math.Log(p.period.x) * 100), int(math.Log(p.period.y) * 100)}
		if seen[key] {
			continue
		}
		seen[key] = true
		if taken++; taken > closely || ctx.Err() != nil {
			return
		}
		best := h.climb(p)
		places := []peak{best}
		if best.z < locked {
			places = h.seekers[0].top(best.period, best.orient, perScale)
		}
		for _, place := range places {
			h.compare(place)
		}
		if h.report.Found() {
			return
		}
	}
}

// spread looks for the pilot at the periods on all processors, and returns the highest peak of each orientation and period, best first.
func (h *hunt) spread(ctx context.Context, periods []period, pairs []int) (peaks []peak) {
	var working sync.WaitGroup
	found := make([][]peak, len(h.seekers))
	for n, k := range h.seekers {
		working.Go(func() {
			for i := n; i < len(periods) && ctx.Err() == nil; i += len(h.seekers) {
				found[n] = append(found[n], k.best(periods[i], pairs)...)
			}
		})
	}
	working.Wait()
	for _, list := range found {
		peaks = append(peaks, list...)
	}
	return sorted(peaks)
}

// climb improves the period of a peak: first both sides together, then each.
func (h *hunt) climb(from peak) peak {
	k := h.seekers[0]
	best := from
	try := func(p period) bool {
		for _, found := range k.best(p, []int{from.orient &^ 1}) {
			if found.orient == from.orient && found.z > best.z {
				best = found
				return true
			}
		}
		return false
	}
	step := h.step(from.period) / 2
	for range 4 {
		for _, side := range [][2]float64{{1, 1}, {1, 0}, {0, 1}} {
			for _, way := range []float64{1, -1} {
				for n := 0; n < 3 && try(best.period.times(1+way*step*side[0], 1+way*step*side[1])); n++ {
				}
			}
		}
		step /= 2
	}
	return best
}
