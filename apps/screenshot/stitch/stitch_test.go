package stitch_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/holdfastdev/holdfast/apps/screenshot/stitch"
)

func noise(width, height int) *image.NRGBA {
	random := rand.New(rand.NewPCG(1, 2))
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = byte(random.Uint32()) | byte(0xff*(i%4/3)) // opaque
	}
	return m
}

// cut returns a picture in strips, of different types.
func cut(whole *image.NRGBA, height int) stitch.Source {
	top, n := 0, 0
	return func() (image.Image, error) {
		if top >= whole.Bounds().Dy() {
			return nil, errors.New("there are no more strips")
		}
		part := whole.SubImage(image.Rect(0, top, whole.Bounds().Dx(), min(top+height, whole.Bounds().Dy())))
		top += height
		if n++; n%2 == 0 {
			other := image.NewRGBA(part.Bounds())
			draw.Draw(other, other.Bounds(), part, part.Bounds().Min, draw.Src)
			return other, nil
		}
		return part, nil
	}
}

func TestStripsMakeTheSamePicture(t *testing.T) {
	whole := noise(211, 500)
	for _, height := range []int{1, 48, 64, 499, 500, 1000} {
		var out bytes.Buffer
		if err := stitch.PNG(&out, 211, 500, cut(whole, height)); err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(&out)
		if err != nil {
			t.Fatal(err)
		}
		for y := range 500 {
			for x := range 211 {
				if color.NRGBAModel.Convert(got.At(x, y)) != whole.NRGBAAt(x, y) {
					t.Fatalf("strips of %d: pixel %d, %d", height, x, y)
				}
			}
		}
	}
}

func TestJPEGOfStripsIsThatOfTheWhole(t *testing.T) {
	whole := noise(100, 200)
	var out, want bytes.Buffer
	if err := stitch.JPEG(&out, 100, 200, 90, cut(whole, 3*stitch.MinRows+5)); err != nil {
		t.Fatal(err)
	}
	opaque := image.NewRGBA(whole.Bounds())
	draw.Draw(opaque, opaque.Bounds(), whole, image.Point{}, draw.Src)
	if err := jpeg.Encode(&want, opaque, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want.Bytes()) {
		t.Error("the pictures differ")
	}
}

func TestStripsOfAnotherSizeAreRefused(t *testing.T) {
	whole := noise(100, 200)
	for _, size := range []image.Point{{99, 200}, {100, 150}} {
		var out bytes.Buffer
		if err := stitch.PNG(&out, size.X, size.Y, cut(whole, 64)); !errors.Is(err, stitch.ErrSize) {
			t.Errorf("%v: %v", size, err)
		}
	}
	var out bytes.Buffer
	if err := stitch.PNG(&out, 100, 300, cut(whole, 64)); err == nil {
		t.Error("missing strips are not noticed")
	}
	if err := stitch.JPEG(&out, 100, 300, 80, cut(whole, 64)); err == nil {
		t.Error("missing strips are not noticed in a JPEG")
	}
}

func TestUniformPicturesAreFound(t *testing.T) {
	m := image.NewNRGBA(image.Rect(0, 0, 50, 50))
	draw.Draw(m, m.Bounds(), image.NewUniform(color.NRGBA{10, 200, 30, 255}), image.Point{}, draw.Src)
	encoded := func(m image.Image) image.Image {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, nil); err != nil {
			t.Fatal(err)
		}
		back, err := jpeg.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		return back
	}
	if !stitch.Uniform(m) || !stitch.Uniform(encoded(m)) {
		t.Error("a uniform picture")
	}
	draw.Draw(m, image.Rect(20, 20, 30, 21), image.Black, image.Point{}, draw.Src)
	if stitch.Uniform(m) || stitch.Uniform(encoded(m)) {
		t.Error("a line was not seen")
	}
}
