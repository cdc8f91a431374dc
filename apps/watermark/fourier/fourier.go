// Package fourier computes the discrete Fourier transform of square tiles whose side is a power of two. It has no dependencies, and a plan allocates its memory once.
package fourier

import "math"

// A Tile is a square of complex numbers in rows, the parts separate.
type Tile struct{ Re, Im []float32 }

// NewTile returns a tile of zeros for a plan.
func (p *Plan) NewTile() Tile {
	return Tile{make([]float32, p.side*p.side), make([]float32, p.side*p.side)}
}

// A Plan transforms tiles of one side. It is not safe for concurrent use: each goroutine needs its own.
type Plan struct {
	side     int
	reversed []int       // bit reversal
	roots    [][]float32 // for each stage from the third on: cosine and sine of each step, one after the other
}

// NewPlan returns a plan for tiles of side numbers on each side. It panics if side is not a power of two of at least 8.
func NewPlan(side int) *Plan {
	if side < 8 || side&(side-1) != 0 {
		panic("fourier: the side of a tile must be a power of two of at least 8")
	}
	p := &Plan{side: side, reversed: make([]int, side)}
	for half := 4; half < side; half *= 2 {
		var stage []float32
		for k := range half {
			sin, cos := math.Sincos(-math.Pi * float64(k) / float64(half))
			stage = append(stage, float32(cos), float32(sin))
		}
		p.roots = append(p.roots, stage)
	}
	for i := range side {
		for bit, from := side>>1, 1; bit > 0; bit, from = bit>>1, from<<1 {
			if i&from != 0 {
				p.reversed[i] |= bit
			}
		}
	}
	return p
}

// Forward transforms a tile in place. The frequency (u, v), for columns and rows, is then at u*side+v: rows and columns are swapped, which saves time.
func (p *Plan) Forward(t Tile) {
	p.rows(t)
	transpose(t.Re, p.side)
	transpose(t.Im, p.side)
	p.rows(t)
}

// Inverse transforms what Forward returned back in place, with the factor 1/side².
func (p *Plan) Inverse(t Tile) {
	p.Forward(Tile{t.Im, t.Re})
	scale := 1 / float32(p.side*p.side)
	for i := range t.Re {
		t.Re[i] *= scale
		t.Im[i] *= scale
	}
}

func (p *Plan) rows(t Tile) {
	n := p.side
	for y := range n {
		p.row(t.Re[y*n:(y+1)*n], t.Im[y*n:(y+1)*n])
	}
}

// row transforms one row in place.
func (p *Plan) row(re, im []float32) {
	im = im[:len(re)]
	for i, j := range p.reversed {
		if i < j {
			re[i], re[j], im[i], im[j] = re[j], re[i], im[j], im[i]
		}
	}
	fours(re, im)
	half := 4
	for _, roots := range p.roots {
		for begin := 0; begin < len(re); begin += 2 * half {
			butterflies(re[begin:begin+2*half], im[begin:begin+2*half], roots)
		}
		half *= 2
	}
}

// fours does the first two stages, whose roots are 1 and -i.
func fours(re, im []float32) {
	im = im[:len(re)]
	for i := 0; i+3 < len(re); i += 4 {
		r, m := re[i:i+4:i+4], im[i:i+4:i+4]
		r0, r1, r2, r3 := r[0]+r[1], r[0]-r[1], r[2]+r[3], r[2]-r[3]
		m0, m1, m2, m3 := m[0]+m[1], m[0]-m[1], m[2]+m[3], m[2]-m[3]
		r[0], r[2], r[1], r[3] = r0+r2, r0-r2, r1+m3, r1-m3
		m[0], m[2], m[1], m[3] = m0+m2, m0-m2, m1-r3, m1+r3
	}
}

func butterflies(re, im, roots []float32) {
	half := len(re) / 2
	ar, br, ai, bi := re[:half], re[half:], im[:half], im[half:]
	br, ai, bi, roots = br[:len(ar)], ai[:len(ar)], bi[:len(ar)], roots[:2*len(ar)]
	for k := range ar {
		c, s := roots[2*k], roots[2*k+1]
		tr, ti := br[k]*c-bi[k]*s, br[k]*s+bi[k]*c
		xr, xi := ar[k], ai[k]
		br[k], bi[k] = xr-tr, xi-ti
		ar[k], ai[k] = xr+tr, xi+ti
	}
}

// transpose swaps rows and columns in place, in blocks that stay in the cache.
func transpose(a []float32, n int) {
	const block = 16
	for y0 := 0; y0 < n; y0 += block {
		for x0 := y0; x0 < n; x0 += block {
			for y := y0; y < min(y0+block, n); y++ {
				for x := max(x0, y+1); x < min(x0+block, n); x++ {
					a[y*n+x], a[x*n+y] = a[x*n+y], a[y*n+x]
				}
			}
		}
	}
}
