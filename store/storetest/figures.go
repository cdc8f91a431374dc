package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfastdev/holdfast/store"
)

// Figures checks that the reads for metrics, health and pages touch as many blocks with 320,000 jobs as with 160,000: at most 1.2 times as many, with
// old statistics and with new ones. Load adds the jobs from one number to another to five queues: a third ready, a third in the future, and of the
// rest half complete and half failed.
func Figures(t *testing.T, m *BlockMeter, load func(from, to int)) {
	read := func() int {
		return m.Run(func(s store.Store) {
			depths, err := s.Depths(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			d := depths[0]
			if len(depths) != 5 || fmt.Sprint(d.AtLeast) != "[ready later retrying dead]" || d.Ready < 9_000 || d.Later == 0 || d.Dead == 0 || d.Oldest.IsZero() {
				t.Errorf("with many ready jobs the store returns %+v", depths)
			}
		})
	}
	load(1, 160_000)
	few := read()
	load(160_001, 320_000)
	for _, step := range []struct {
		name string
		do   func()
	}{{"statistics from before", func() {}}, {"statistics collected", m.Analyze}} {
		step.do()
		many := read()
		t.Logf("%s: %d blocks of 160,000 jobs, %d of 320,000", step.name, few, many)
		if float64(many) > flatFactor*float64(few) {
			t.Errorf("%s: the figures read %d blocks of 160,000 jobs and %d of 320,000; %g times as many are allowed", step.name, few, many, flatFactor)
		}
	}
}
