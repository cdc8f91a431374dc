package detect

import "math"

const (
	blockSide = 32
	clipAt    = 2    // standard deviations
	floor     = 0.02 // grey levels squared: a block without any structure is not amplified without limit
)

// equalise makes the blocks of a picture count by how well a mark can be seen in them: what stands out is cut off, and a block with much structure of its own is divided by its
// variance.
func equalise(picture []float32, width, height int) {
	for y := 0; y < height; y += blockSide {
		for x := 0; x < width; x += blockSide {
			equaliseBlock(picture, width, area{x, y, min(x+blockSide, width), min(y+blockSide, height)})
		}
	}
}

type area struct{ x0, y0, x1, y1 int }

func equaliseBlock(picture []float32, width int, a area) {
	var sum, squares float64
	for y := a.y0; y < a.y1; y++ {
		for _, v := range picture[y*width+a.x0 : y*width+a.x1] {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
	}
	n := float64((a.x1 - a.x0) * (a.y1 - a.y0))
	mean := sum / n
	variance := max(0, squares/n-mean*mean)
	limit, by, middle := float32(clipAt*math.Sqrt(variance)), float32(1/(variance+floor)), float32(mean)
	for y := a.y0; y < a.y1; y++ {
		row := picture[y*width+a.x0 : y*width+a.x1]
		for i, v := range row {
			row[i] = min(max(v-middle, -limit), limit) * by
		}
	}
}
