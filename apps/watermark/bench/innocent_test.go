package bench

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/detect"
	"github.com/holdfastdev/holdfast/apps/watermark/mark"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
)

var correlations = flag.Int("bench.correlations", 1_000_000_000, "correlations of clips with campaigns whose mark they do not have")

// falseAlarm is the number of standard deviations that no recipient of another campaign may reach.
const falseAlarm = 7.5

// Clips without a mark, and copies with the mark of another campaign, are compared with campaigns of other keys, the grid of scales included.
func TestNoInnocentIsNamed(t *testing.T) {
	if !*benchRun {
		return
	}
	folder := workFolder(t)
	var sums []*detect.Sum
	for _, cl := range chosen(t) {
		source := cl.make(t, folder, *length)
		other := campaign(t, "the campaign of the copy")
		for _, path := range []string{source, marked(t, source, filepath.Join(folder, "foreign.mp4"), other, other.Tokens[0])} {
			sum, err := media.Tools{}.ReadMarks(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			sums = append(sums, sum)
		}
	}
	done, most, begin := 0, 0.0, time.Now()
	for n := 0; done < *correlations; n++ {
		key, err := mark.NewKey(bytes.Repeat([]byte{9}, 32), fmt.Sprintf("innocent %d", n))
		if err != nil {
			t.Fatal(err)
		}
		c := campaign(t, "innocent")
		c.Key = key
		report, err := sums[n%len(sums)].Search(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		done += report.Correlations
		most = max(most, report.Findings[0].Z)
		if report.Findings[0].Z >= falseAlarm {
			t.Errorf("search %d: %v of another campaign", n, report.Findings[0])
		}
	}
	fmt.Printf("\n%d correlations in %v: the best innocent recipient has %.2f standard deviations\n", done, time.Since(begin).Round(time.Second), most)
}
