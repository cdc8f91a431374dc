package detect

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

const (
	chipPixels = 5
	margin     = 12
	barHeight  = 9
	mostBars   = 20
)

// Evidence draws what the report rests on: on the left the tile that the best recipient's copy has, in the middle what was read (brighter than its surroundings is orange, darker
// is blue, the pilot is left out), on the right how often the two agree, chip by chip (green). Below are the correlations of the best recipients, with a line at NamedFrom.
func (r *Report) Evidence() image.Image {
	side := mark.Side * chipPixels
	bars := min(len(r.Findings), mostBars)
	picture := image.NewRGBA(image.Rect(0, 0, 3*side+4*margin, side+2*margin+bars*(barHeight+3)+margin))
	draw.Draw(picture, picture.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	deviation := r.deviation()
	for i, read := range r.Read {
		at := image.Pt(margin+i%mark.Side*chipPixels, margin+i/mark.Side*chipPixels)
		expected := float64(r.Expected[i])
		v := math.Max(-1, math.Min(1, float64(read)/(2*deviation)))
		for n, c := range []color.Color{signColour(expected), signColour(v), agreement(expected * v)} {
			place := at.Add(image.Pt(n*(side+margin), 0))
			draw.Draw(picture, image.Rectangle{place, place.Add(image.Pt(chipPixels, chipPixels))}, image.NewUniform(c), image.Point{}, draw.Src)
		}
	}
	r.drawBars(picture, side+2*margin, bars)
	return picture
}

func (r *Report) deviation() float64 {
	squares := 0.0
	for _, v := range r.Read {
		squares += float64(v) * float64(v)
	}
	return math.Sqrt(squares/mark.CodeSize) + 1e-9
}

func (r *Report) drawBars(picture draw.Image, top, bars int) {
	width := picture.Bounds().Dx() - 2*margin
	most := math.Max(2*NamedFrom, 1)
	if bars > 0 {
		most = math.Max(most, r.Findings[0].Z)
	}
	for n, f := range r.Findings[:bars] {
		c := color.RGBA{150, 150, 150, 255}
		if n < len(r.Named()) {
			c = color.RGBA{190, 40, 40, 255}
		}
		y := top + n*(barHeight+3)
		length := int(math.Max(0, f.Z) / most * float64(width))
		draw.Draw(picture, image.Rect(margin, y, margin+length, y+barHeight), image.NewUniform(c), image.Point{}, draw.Src)
	}
	line := margin + int(NamedFrom/most*float64(width))
	draw.Draw(picture, image.Rect(line, top-2, line+1, top+bars*(barHeight+3)), image.NewUniform(color.Black), image.Point{}, draw.Src)
}

// signColour returns orange for 1, blue for -1 and white for 0.
func signColour(v float64) color.Color {
	if v >= 0 {
		return fade(color.RGBA{220, 110, 0, 255}, v)
	}
	return fade(color.RGBA{0, 90, 200, 255}, -v)
}

// agreement returns green for 1 and black for -1.
func agreement(v float64) color.Color {
	if v >= 0 {
		return fade(color.RGBA{0, 140, 60, 255}, v)
	}
	return fade(color.RGBA{60, 60, 60, 255}, -v)
}

func fade(c color.RGBA, by float64) color.RGBA {
	mix := func(v uint8) uint8 { return uint8(255 - by*(255-float64(v))) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}
