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
	cos, sin []float32 // of the roots of one row
	reversed []int     // bit reversal
}

// NewPlan returns a plan for tiles of side numbers on each side. It panics if side is not a power of two of at least 8.
func NewPlan(side int) *Plan {
	if side < 8 || side&(side-1) != 0 {
		panic("fourier: the side of a tile must be a power of two of at least 8")
	}
	p := &Plan{side: side, reversed: make([]int, side)}
	for i := range side / 2 {
		s, c := math.Sincos(-2 * math.Pi * float64(i) / float64(side))
		p.cos, p.sin = append(p.cos, float32(c)), append(p.sin, float32(s))
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

// Forward transforms a tile in place.
func (p *Plan) Forward(t Tile) {
	n := p.side
	for y := range n {
		p.row(t.Re[y*n:(y+1)*n], t.Im[y*n:(y+1)*n])
	}
	transpose(t.Re, n)
	transpose(t.Im, n)
	for y := range n {
		p.row(t.Re[y*n:(y+1)*n], t.Im[y*n:(y+1)*n])
	}
	transpose(t.Re, n)
	transpose(t.Im, n)
}

// Inverse transforms a tile back in place, with the factor 1/side².
func (p *Plan) Inverse(t Tile) {
	p.Forward(Tile{t.Im, t.Re})
	scale := 1 / float32(p.side*p.side)
	for i := range t.Re {
		t.Re[i] *= scale
		t.Im[i] *= scale
	}
}

// row transforms one row in place.
func (p *Plan) row(re, im []float32) {
	n := p.side
	im = im[:len(re)]
	for i, j := range p.reversed {
		if i < j {
			re[i], re[j], im[i], im[j] = re[j], re[i], im[j], im[i]
		}
	}
	for half := 1; half < n; half *= 2 {
		step := n / (2 * half)
		for begin := 0; begin < n; begin += 2 * half {
			ar, ai := re[begin:begin+half], im[begin:begin+half]
			br, bi := re[begin+half:begin+2*half], im[begin+half:begin+2*half]
			ai, br, bi = ai[:len(ar)], br[:len(ar)], bi[:len(ar)]
			for k := range ar {
				c, s := p.cos[k*step], p.sin[k*step]
				tr, ti := br[k]*c-bi[k]*s, br[k]*s+bi[k]*c
				br[k], bi[k] = ar[k]-tr, ai[k]-ti
				ar[k], ai[k] = ar[k]+tr, ai[k]+ti
			}
		}
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
