package pdf

import "math"

// A matrix is an affine transformation: the point x, y becomes x*a + y*c + e, x*b + y*d + f.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// then returns the matrix that applies m and then n.
func (m matrix) then(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

func (m matrix) point(x, y float64) (float64, float64) {
	return x*m[0] + y*m[2] + m[4], x*m[1] + y*m[3] + m[5]
}

// valid reports whether all values are numbers of a usable size.
func (m matrix) valid() bool {
	for _, n := range m {
		if math.IsNaN(n) || abs(n) > 1e9 {
			return false
		}
	}
	return true
}

func toMatrix(n []float64) (matrix, bool) {
	if len(n) != 6 {
		return identity, false
	}
	return matrix(n), true
}

// An edges value is a rectangle: left, top, right, bottom.
type edges struct{ x0, y0, x1, y1 float64 }

// boundingBox returns the bounds of a transformed rectangle.
func boundingBox(m matrix, x0, y0, x1, y1 float64) edges {
	e := edges{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, p := range [4][2]float64{{x0, y0}, {x1, y0}, {x0, y1}, {x1, y1}} {
		x, y := m.point(p[0], p[1])
		e = e.with(edges{x, y, x, y})
	}
	return e
}

func (e edges) with(o edges) edges {
	return edges{min(e.x0, o.x0), min(e.y0, o.y0), max(e.x1, o.x1), max(e.y1, o.y1)}
}

func (e edges) box() Box { return Box{e.x0, e.y0, e.x1 - e.x0, e.y1 - e.y0} }
