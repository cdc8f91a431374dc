package pages

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
	"github.com/holdfastdev/holdfast/store"
)

const (
	chartMinutes = 60
	chartWidth   = 720
	chartHeight  = 120
)

// A chart is the attempts of the last hour by minute, as bars.
type chart struct {
	Bars             []bar
	Top              int // the number at the top of the scale
	Complete, Failed int
	Width, Height    int
}

// A bar is one minute: what was stored below, what failed for good above it.
type bar struct {
	X, Width          float64
	GoodY, GoodHeight float64
	BadY, BadHeight   float64
	Label             string
}

// chartOf draws the trends of the queue of resources.
func chartOf(trends []store.Trend, now time.Time) chart {
	c := chart{Width: chartWidth, Height: chartHeight}
	first := now.Add(-(chartMinutes - 1) * time.Minute).Truncate(time.Minute)
	var good, bad [chartMinutes]int
	for _, t := range trends {
		if i := int(t.Step.Sub(first) / time.Minute); t.Queue == work.QueueFetch && i >= 0 && i < chartMinutes {
			good[i] += t.Complete
			bad[i] += t.Failed
			c.Complete += t.Complete
			c.Failed += t.Failed
		}
	}
	c.Top = 1
	for i := range good {
		c.Top = max(c.Top, good[i]+bad[i])
	}
	c.Top = roundUp(c.Top)
	step := float64(chartWidth) / chartMinutes
	for i := range good {
		if good[i]+bad[i] == 0 {
			continue
		}
		b := bar{X: float64(i)*step + 1, Width: step - 2}
		b.GoodHeight = float64(good[i]) / float64(c.Top) * chartHeight
		b.BadHeight = float64(bad[i]) / float64(c.Top) * chartHeight
		b.GoodY = chartHeight - b.GoodHeight
		b.BadY = b.GoodY - b.BadHeight
		b.Label = fmt.Sprintf("%s: %d stored, %d failed", first.Add(time.Duration(i)*time.Minute).Format("15:04"), good[i], bad[i])
		c.Bars = append(c.Bars, b)
	}
	return c
}

// roundUp returns the next number of the form 1, 2 or 5 times a power of ten.
func roundUp(n int) int {
	for power := 1; ; power *= 10 {
		for _, digit := range []int{1, 2, 5} {
			if digit*power >= n {
				return digit * power
			}
		}
	}
}
