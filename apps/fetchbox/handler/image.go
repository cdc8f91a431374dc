package handler

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	_ "image/gif" // the formats that image.DecodeConfig knows
	_ "image/jpeg"
	_ "image/png"
	"io"
	"os"
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

var errCut = errors.New("its end is missing")

// complete checks that an image has its end. Sources without Content-Length may cut a body without a sign.
func complete(format string, file *os.File, size int64) error {
	switch format {
	case "png":
		return completePNG(file, size)
	case "jpeg":
		return endsWith(file, size, []byte{0xff, 0xd9}, 64<<10)
	case "gif":
		return endsWith(file, size, []byte{0x3b}, 64)
	case "webp":
		return announcesSize(file, size, 4, 8)
	case "bmp":
		return announcesSize(file, size, 2, 0)
	}
	return nil
}

// endsWith checks that a mark is in the last bytes of a file: some writers add bytes behind it.
func endsWith(file io.ReaderAt, size int64, mark []byte, within int64) error {
	tail := make([]byte, min(size, within))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return err
	}
	for at := len(tail) - len(mark); at >= 0; at-- {
		if string(tail[at:at+len(mark)]) == string(mark) {
			return nil
		}
	}
	return errCut
}

// announcesSize checks the size that a file has in its header: 4 bytes at a position, to which a number is added.
func announcesSize(file io.ReaderAt, size, at, plus int64) error {
	var field [4]byte
	if _, err := file.ReadAt(field[:], at); err != nil {
		return errCut
	}
	if int64(binary.LittleEndian.Uint32(field[:]))+plus > size {
		return errCut
	}
	return nil
}

// completePNG checks the chunks of a PNG image up to its end, with their checksums.
func completePNG(file io.ReaderAt, size int64) error {
	const signature = 8
	from := bufio.NewReaderSize(io.NewSectionReader(file, signature, size-signature), 64<<10)
	for {
		var head [8]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return errCut
		}
		length := int64(binary.BigEndian.Uint32(head[:4]))
		sum := crc32.NewIEEE()
		_, _ = sum.Write(head[4:])
		if _, err := io.CopyN(sum, from, length); err != nil {
			return errCut
		}
		var want [4]byte
		if _, err := io.ReadFull(from, want[:]); err != nil {
			return errCut
		}
		if binary.BigEndian.Uint32(want[:]) != sum.Sum32() {
			return fmt.Errorf("the checksum of its part %q is wrong", head[4:])
		}
		if string(head[4:]) == "IEND" {
			return nil
		}
	}
}
