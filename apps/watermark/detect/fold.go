package detect

import (
	"math"

	"github.com/holdfastdev/holdfast/apps/watermark/fourier"
	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

// grid is the side of a folded tile: two bins for each chip.
const grid = 2 * mark.Side

// A period is the size of a tile in the pictures that are examined, in pixels.
type period struct{ x, y float64 }

func (p period) times(x, y float64) period { return period{p.x * x, p.y * y} }

// A folder adds up all tiles of a picture into one.
type folder struct {
	width, height int
	rows          []float32 // one row of the picture for each row of the tile
	columns       []uint8   // the column of the tile of each column of the picture
}

func newFolder(width, height int) *folder {
	return &folder{width: width, height: height, rows: make([]float32, grid*width), columns: make([]uint8, width)}
}

// fold folds a picture whose tiles have a period.
func (f *folder) fold(picture []float32, p period, to fourier.Tile) {
	clear(f.rows)
	for y := range f.height {
		at := tileBin(y, p.y) * f.width
		sum, row := f.rows[at:at+f.width], picture[y*f.width:(y+1)*f.width]
		row = row[:len(sum)]
		for x := range sum {
			sum[x] += row[x]
		}
	}
	for x := range f.columns {
		f.columns[x] = uint8(tileBin(x, p.x))
	}
	clear(to.Re)
	clear(to.Im)
	for y := range grid {
		out := (*[grid]float32)(to.Re[y*grid:])
		for x, v := range f.rows[y*f.width : (y+1)*f.width] {
			out[f.columns[x]&(grid-1)] += v
		}
	}
}

// tileBin returns the bin of the middle of a pixel.
func tileBin(pixel int, period float64) int {
	_, part := math.Modf((float64(pixel) + 0.5) / period)
	return min(int(part*grid), grid-1)
}

// whiten makes the frequencies of a spectrum more equal: what is strong in few frequencies is the picture, the mark is spread over all.
func whiten(t fourier.Tile) {
	for i := range t.Re {
		power := t.Re[i]*t.Re[i] + t.Im[i]*t.Im[i]
		if power < 1e-20 {
			t.Re[i], t.Im[i] = 0, 0
			continue
		}
		by := float32(1 / math.Sqrt(math.Sqrt(float64(power))))
		t.Re[i] *= by
		t.Im[i] *= by
	}
	t.Re[0], t.Im[0] = 0, 0
}

// An Orientation says how a copy was turned or flipped: first its rows and columns are swapped, then left and right, then top and bottom.
type Orientation struct{ Swap, FlipX, FlipY bool }

func orientation(n int) Orientation {
	return Orientation{FlipX: n&1 != 0, FlipY: n&2 != 0, Swap: n&4 != 0}
}

const orientations = 8

// String says what was done to the copy.
func (o Orientation) String() string {
	return map[Orientation]string{
		{}: "upright", {FlipX: true}: "mirrored", {FlipY: true}: "upside down and mirrored", {FlipX: true, FlipY: true}: "upside down",
		{Swap: true}: "turned by 90° and mirrored", {Swap: true, FlipX: true}: "turned by 270°", {Swap: true, FlipY: true}: "turned by 90°",
		{Swap: true, FlipX: true, FlipY: true}: "turned by 270° and mirrored",
	}[o]
}

// source returns where the spectrum of an upright tile finds its frequency (u, v) in the spectrum of the tile as it is.
func (o Orientation) source(u, v int) int {
	if o.FlipX {
		u = (grid - u) % grid
	}
	if o.FlipY {
		v = (grid - v) % grid
	}
	if o.Swap {
		u, v = v, u
	}
	return frequency(u, v)
}

// frequency returns where a spectrum has a frequency.
func frequency(u, v int) int { return u*grid + v }
