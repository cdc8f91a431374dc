// Package stitch makes one picture of the strips of a tall page, and looks at pictures. It holds one strip at a time: a page of 60,000 pixels in height would need hundreds
// of megabytes otherwise.
package stitch

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"io"
)

// A Source returns the strips of a picture from top to bottom. All have the width of the picture.
type Source func() (image.Image, error)

// ErrSize is the error of strips that do not have the size of the picture together.
var ErrSize = errors.New("the strips do not have the size of the picture")

// PNG writes a picture without transparency.
func PNG(to io.Writer, width, height int, next Source) error {
	if _, err := io.WriteString(to, "\x89PNG\r\n\x1a\n"); err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(width))
	header = binary.BigEndian.AppendUint32(header, uint32(height))
	if err := writeChunk(to, "IHDR", append(header, 8, 2, 0, 0, 0)); err != nil { // 8 bits, red green blue
		return err
	}
	data := &chunks{to: to}
	packed, _ := zlib.NewWriterLevel(data, zlib.BestSpeed)
	rows := rowWriter{to: packed, width: width, above: make([]byte, 3*width), row: make([]byte, 3*width), filtered: make([]byte, 1+3*width)}
	for done := 0; done < height; {
		strip, err := next()
		if err != nil {
			return err
		}
		size := strip.Bounds()
		if done += size.Dy(); size.Dx() != width || size.Empty() || done > height {
			return fmt.Errorf("%w: a strip of %v ends at %d of %d by %d", ErrSize, size.Size(), done, width, height)
		}
		if err := rows.write(strip); err != nil {
			return err
		}
	}
	if err := errors.Join(packed.Close(), data.flush()); err != nil {
		return err
	}
	return writeChunk(to, "IEND", nil)
}

// A rowWriter writes rows as differences to the row above, which makes pages small.
type rowWriter struct {
	to                   io.Writer
	width                int
	above, row, filtered []byte
}

func (w *rowWriter) write(strip image.Image) error {
	bounds := strip.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		readRow(w.row, strip, y)
		w.filtered[0] = 2 // the filter "up"
		for i, value := range w.row {
			w.filtered[1+i] = value - w.above[i]
		}
		if _, err := w.to.Write(w.filtered); err != nil {
			return err
		}
		w.row, w.above = w.above, w.row
	}
	return nil
}

// readRow reads red, green and blue of a row.
func readRow(into []byte, from image.Image, y int) {
	bounds := from.Bounds()
	var pixels []byte
	switch m := from.(type) {
	case *image.RGBA:
		pixels = m.Pix[m.PixOffset(bounds.Min.X, y):]
	case *image.NRGBA:
		pixels = m.Pix[m.PixOffset(bounds.Min.X, y):]
	default:
		for x := range bounds.Dx() {
			c := color.NRGBAModel.Convert(from.At(bounds.Min.X+x, y)).(color.NRGBA)
			into[3*x], into[3*x+1], into[3*x+2] = c.R, c.G, c.B
		}
		return
	}
	for x := range bounds.Dx() {
		copy(into[3*x:3*x+3], pixels[4*x:4*x+3])
	}
}

// chunks collects compressed bytes into chunks of a PNG.
type chunks struct {
	to   io.Writer
	data bytes.Buffer
}

const chunkSize = 256 << 10

func (c *chunks) Write(p []byte) (int, error) {
	c.data.Write(p)
	if c.data.Len() < chunkSize {
		return len(p), nil
	}
	return len(p), c.flush()
}

func (c *chunks) flush() error {
	defer c.data.Reset()
	return writeChunk(c.to, "IDAT", c.data.Bytes())
}

func writeChunk(to io.Writer, name string, data []byte) error {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	chunk = append(append(chunk, name...), data...)
	_, err := to.Write(binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:])))
	return err
}

// MinRows is the smallest height of a strip for JPEG; the last one may be smaller.
const MinRows = 16

// JPEG writes a picture with a quality of 1 to 100.
func JPEG(to io.Writer, width, height, quality int, next Source) error {
	tall := &tall{size: image.Rect(0, 0, width, height), next: next}
	err := jpeg.Encode(to, tall, &jpeg.Options{Quality: quality})
	return errors.Join(tall.err, err)
}

// tall is a picture of which two strips are in memory. The encoder reads it from top to bottom, MinRows rows at a time.
type tall struct {
	size          image.Rectangle
	next          Source
	strip, before image.Image
	top           int // of the strip, in the picture
	err           error
}

func (t *tall) ColorModel() color.Model { return color.RGBAModel }
func (t *tall) Bounds() image.Rectangle { return t.size }

func (t *tall) At(x, y int) color.Color {
	for t.err == nil && (t.strip == nil || y >= t.top+t.strip.Bounds().Dy()) {
		if t.strip != nil {
			t.top += t.strip.Bounds().Dy()
		}
		t.before = t.strip
		if t.strip, t.err = t.next(); t.err == nil && t.strip.Bounds().Dx() != t.size.Dx() {
			t.err = ErrSize
		}
	}
	if t.err != nil {
		return color.RGBA{}
	}
	strip, top := t.strip, t.top
	if y < top {
		strip, top = t.before, top-t.before.Bounds().Dy()
	}
	bounds := strip.Bounds()
	return strip.At(bounds.Min.X+x, bounds.Min.Y+y-top)
}

// tolerance is how much the values of one colour may differ after a lossy compression.
const tolerance = 3

// Uniform reports whether all pixels of a picture have the same colour.
func Uniform(m image.Image) bool {
	switch m := m.(type) {
	case *image.RGBA:
		return sameBytes(m.Pix, 4)
	case *image.NRGBA:
		return sameBytes(m.Pix, 4)
	case *image.YCbCr:
		return sameBytes(m.Y, 1) && sameBytes(m.Cb, 1) && sameBytes(m.Cr, 1)
	case *image.NYCbCrA:
		return sameBytes(m.Y, 1) && sameBytes(m.Cb, 1) && sameBytes(m.Cr, 1) && sameBytes(m.A, 1)
	case *image.Gray:
		return sameBytes(m.Pix, 1)
	case *image.Paletted:
		return sameBytes(m.Pix, 1)
	}
	return false
}

// sameBytes compares each pixel with the first one.
func sameBytes(pixels []byte, size int) bool {
	for i := size; i < len(pixels); i++ {
		difference := int(pixels[i]) - int(pixels[i%size])
		if difference > tolerance || difference < -tolerance {
			return false
		}
	}
	return true
}
