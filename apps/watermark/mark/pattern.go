package mark

import (
	"fmt"
	"io"
)

// A Pattern is what FFmpeg adds to a video: pictures of yuv420p without a header, one for each phase. FFmpeg's blend mode grainmerge adds a value and subtracts 128.
type Pattern struct {
	Width, Height, Chip int
	tiles               [Phases][Chips]int8
}

// NewPattern returns the pattern of a recipient for pictures of a size, which must be even.
func NewPattern(key Key, token string, width, height int) (*Pattern, error) {
	if width < 16 || height < 16 || width%2 != 0 || height%2 != 0 {
		return nil, fmt.Errorf("a picture of %d×%d cannot be marked: width and height must be even, and at least 16", width, height)
	}
	p := &Pattern{Width: width, Height: height, Chip: ChipSize(width, height)}
	layout, codewords := key.Layout(), key.Codewords(token)
	for phase := range p.tiles {
		p.tiles[phase] = layout.Tile(&codewords, phase)
	}
	return p, nil
}

// FrameSize returns the bytes of one picture.
func (p *Pattern) FrameSize() int { return p.Width * p.Height * 3 / 2 }

// Write writes the pictures of the phases one after the other, again and again, until count pictures are written or out fails.
func (p *Pattern) Write(out io.Writer, count int) error {
	rows := make([]byte, p.Width*p.Chip) // one row of chips
	grey := make([]byte, p.Width*p.Height/2)
	for i := range grey {
		grey[i] = 128 // no colour
	}
	for n := range count {
		for y := 0; y < p.Height; y += p.Chip {
			p.fillRow(rows, n%Phases, y/p.Chip%Side)
			if _, err := out.Write(rows[:p.Width*min(p.Chip, p.Height-y)]); err != nil {
				return err
			}
		}
		if _, err := out.Write(grey); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pattern) fillRow(rows []byte, phase, row int) {
	for x := range p.Width {
		rows[x] = byte(128 + Amplitude*int(p.tiles[phase][row*Side+x/p.Chip%Side]))
	}
	for y := 1; y < p.Chip; y++ {
		copy(rows[y*p.Width:(y+1)*p.Width], rows[:p.Width])
	}
}
