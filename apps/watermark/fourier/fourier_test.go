package fourier_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/holdfastdev/holdfast/apps/watermark/fourier"
)

func TestTheTransformIsThatOfTheDefinitionAndCanBeUndone(t *testing.T) {
	const n = 16
	p := fourier.NewPlan(n)
	tile := p.NewTile()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range tile.Re {
		tile.Re[i], tile.Im[i] = random.Float32()-0.5, random.Float32()-0.5
	}
	before := fourier.Tile{Re: append([]float32(nil), tile.Re...), Im: append([]float32(nil), tile.Im...)}
	p.Forward(tile)
	for v := range n {
		for u := range n {
			var want complex128
			for y := range n {
				for x := range n {
					angle := -2 * math.Pi * float64(u*x+v*y) / n
					want += complex(float64(before.Re[y*n+x]), float64(before.Im[y*n+x])) * cmplx.Rect(1, angle)
				}
			}
			got := complex(float64(tile.Re[u*n+v]), float64(tile.Im[u*n+v]))
			if cmplx.Abs(got-want) > 1e-4 {
				t.Fatalf("at %d, %d: %v, want %v", u, v, got, want)
			}
		}
	}
	p.Inverse(tile)
	for i := range tile.Re {
		if math.Abs(float64(tile.Re[i]-before.Re[i])) > 1e-5 || math.Abs(float64(tile.Im[i]-before.Im[i])) > 1e-5 {
			t.Fatalf("number %d is %v after the transform back, want %v", i, tile.Re[i], before.Re[i])
		}
	}
}

func BenchmarkForward(b *testing.B) {
	p := fourier.NewPlan(128)
	tile := p.NewTile()
	for b.Loop() {
		p.Forward(tile)
	}
}
