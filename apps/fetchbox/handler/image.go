package handler

import (
	"bufio"
	"context"
	"errors"
	"image"
	_ "image/gif" // the formats that image.DecodeConfig knows
	_ "image/jpeg"
	_ "image/png"
	"io"
	"strconv"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
)

// Image accepts PNG, JPEG, GIF, WebP, BMP and TIFF images. It decodes the header and checks that the file is not cut; it does not decode the pixels. Zero fields have
// defaults.
type Image struct {
	MaxPixels int64 // width times height; 100 million when zero
}

const maxPixels = 100_000_000

// Handle finds format, width and height.
func (i Image) Handle(_ context.Context, in Input) (Output, error) {
	file, err := in.open()
	if err != nil {
		return Output{}, err
	}
	defer func() { _ = file.Close() }()
	header, format, err := image.DecodeConfig(bufio.NewReader(io.LimitReader(file, 4<<20)))
	switch {
	case errors.Is(err, image.ErrFormat):
		return Output{}, refuse(code.HandlerNotAnImage, "the resource begins as no image does that can be read (PNG, JPEG, GIF, WebP, BMP, TIFF)")
	case err != nil:
		return Output{}, refuse(code.HandlerNotAnImage, "the header of the image cannot be read: %v", err)
	case header.Width <= 0 || header.Height <= 0:
		return Output{}, refuse(code.HandlerNotAnImage, "the image has %d x %d pixels", header.Width, header.Height)
	}
	most := i.MaxPixels
	if most <= 0 {
		most = maxPixels
	}
	if pixels := int64(header.Width) * int64(header.Height); pixels > most {
		return Output{}, refuse(code.HandlerLimit, "the image has %d x %d pixels, the limit is %d", header.Width, header.Height, most)
	}
	if err := complete(format, file, in.File.Size); err != nil {
		return Output{}, refuse(code.HandlerNotAnImage, "the %s image is damaged: %v", format, err)
	}
	return Output{
		Type: "image/" + format,
		Meta: map[string]string{"format": format, "width": strconv.Itoa(header.Width), "height": strconv.Itoa(header.Height)},
	}, nil
}
