// Package detect reads the marks of package mark: it says which recipients of a campaign a clip or a single picture comes from, and how sure that is.
//
// A Sum adds up what is left of the pictures when the slowly changing part is taken away. Search then finds how the copy was scaled, moved, turned or flipped, by the pilot
// that all copies of the campaign have in common, and compares what it reads at the other chips with the codeword of each recipient. See docs/watermark.md of the product for
// what it withstands and what not.
//
// A Sum needs at most about 50 MB whatever the length of the clip. Nothing here is safe for concurrent use; Search itself uses all processors.
package detect

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

// The pictures of 32 seconds are kept apart in bins of 2 seconds, because the marks repeat after 32 seconds. Later pictures go into the same bins again.
const (
	binLength   = 2 * time.Second
	binCount    = int(mark.Phases * mark.Phase / binLength)
	binsInPhase = int(mark.Phase / binLength)
	binPictures = 1600 // more would overflow a sum of 16 bits
)

// MaxPixels is the largest picture that a Sum accepts. Larger ones must be scaled down before: by Scale.
const MaxPixels = 1440 * 720

// Scale returns the size at which pictures of a size are examined: at most 720 lines, or columns if they are fewer. Smaller pictures keep their size.
func Scale(width, height int) (int, int) {
	short := min(width, height)
	if short <= 720 && width*height <= MaxPixels {
		return width, height
	}
	by := min(1, 720/float64(short))
	if area := float64(width) * float64(height) * by * by; area > MaxPixels {
		by *= float64(MaxPixels) / area
	}
	return max(1, int(float64(width)*by+0.5)), max(1, int(float64(height)*by+0.5))
}

// A Sum adds up pictures.
type Sum struct {
	width, height int
	reduced       float64 // by how much the pictures were scaled down to be examined
	bins          [binCount]bin
	columns       []int32
}

type bin struct {
	values   []int16
	pictures int
}

// The slowly changing part of a picture is the mean of a square around each pixel.
const (
	boxSide = 9
	boxHalf = boxSide / 2
	boxArea = boxSide * boxSide
	most    = boxArea // a difference of more than one grey level is the picture's own, and counts as one
	unit    = 8       // a difference is kept in steps of unit/boxArea grey levels
)

// NewSum returns a sum for pictures of a size. reduced is 1 if the pictures were not scaled to be examined, and otherwise the factor, which is less than 1.
func NewSum(width, height int, reduced float64) (*Sum, error) {
	if width < 64 || height < 64 {
		return nil, fmt.Errorf("a picture of %d×%d is too small to carry a mark: use one of at least 64×64", width, height)
	}
	if width*height > MaxPixels {
		return nil, fmt.Errorf("a picture of %d×%d must be scaled down to be examined", width, height)
	}
	return &Sum{width: width, height: height, reduced: reduced, columns: make([]int32, width)}, nil
}

// Add adds the brightness of one picture, row by row. at is its time in the clip.
func (s *Sum) Add(luma []byte, at time.Duration) {
	b := &s.bins[int(at/binLength)%binCount]
	if b.pictures == binPictures {
		return
	}
	b.pictures++
	if b.values == nil {
		b.values = make([]int16, s.width*s.height)
	}
	w, columns := s.width, s.columns
	clear(columns)
	for y := range boxSide {
		addRow(columns, luma[y*w:(y+1)*w])
	}
	for y := boxHalf; ; y++ {
		addDifferences(b.values[y*w:(y+1)*w], luma[y*w:(y+1)*w], columns)
		if y+boxHalf+1 == s.height {
			return
		}
		moveRow(columns, luma[(y-boxHalf)*w:(y-boxHalf+1)*w], luma[(y+boxHalf+1)*w:(y+boxHalf+2)*w])
	}
}

func addRow(columns []int32, row []byte) {
	for x, v := range row {
		columns[x] += int32(v)
	}
}

func moveRow(columns []int32, old, next []byte) {
	old, next = old[:len(columns)], next[:len(columns)]
	for x := range columns {
		columns[x] += int32(next[x]) - int32(old[x])
	}
}

// addDifferences adds the difference between each pixel and the mean around it.
func addDifferences(to []int16, row []byte, columns []int32) {
	total := int32(0)
	for _, c := range columns[:boxSide] {
		total += c
	}
	last := len(row) - boxSide
	row, to = row[boxHalf:boxHalf+last+1], to[boxHalf:boxHalf+last+1]
	for x := range row {
		d := min(max(int32(row[x])*boxArea-total, -most), most)
		to[x] += int16(d / unit)
		if x < last {
			total += columns[x+boxSide] - columns[x]
		}
	}
}

// Pictures returns how many pictures were added.
func (s *Sum) Pictures() (n int) {
	for i := range s.bins {
		n += s.bins[i].pictures
	}
	return n
}

// used returns the bins that have pictures.
func (s *Sum) used() (list []int) {
	for i := range s.bins {
		if s.bins[i].pictures > 0 {
			list = append(list, i)
		}
	}
	return list
}

// mean returns the mean picture of some bins, in grey levels, with its blocks made equal (see equalise).
func (s *Sum) mean(bins []int, out []float32) {
	clear(out)
	pictures := 0
	for _, i := range bins {
		pictures += s.bins[i].pictures
		for x, v := range s.bins[i].values {
			out[x] += float32(v)
		}
	}
	by := float32(unit) / float32(boxArea*max(1, pictures))
	for x := range out {
		out[x] *= by
	}
	equalise(out, s.width, s.height)
}
