package handler

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

var errCut = errors.New("its end is missing")

// complete checks that an image has its end, by reading its structure and not its pixels. Sources without Content-Length may cut a body without a sign. The structure of
// TIFF has no end.
func complete(format string, file io.ReaderAt, size int64) error {
	from := bufio.NewReaderSize(io.NewSectionReader(file, 0, size), 64<<10)
	var err error
	switch format {
	case "png":
		err = endOfPNG(from)
	case "jpeg":
		err = endOfJPEG(from)
	case "gif":
		err = endOfGIF(from)
	case "webp":
		err = announcesSize(file, size, 4, 8)
	case "bmp":
		err = announcesSize(file, size, 2, 0)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// announcesSize checks the size that a file has in its header: 4 bytes at a position, to which a number is added.
func announcesSize(file io.ReaderAt, size, at, plus int64) error {
	var field [4]byte
	if _, err := file.ReadAt(field[:], at); err != nil {
		return err
	}
	if int64(binary.LittleEndian.Uint32(field[:]))+plus > size {
		return errCut
	}
	return nil
}

func skip(from io.Reader, n int64) error {
	_, err := io.CopyN(io.Discard, from, n)
	return err
}

// endOfPNG reads the parts of a PNG image up to the last, with their checksums.
func endOfPNG(from *bufio.Reader) error {
	if err := skip(from, 8); err != nil {
		return err
	}
	for {
		var head [8]byte // length, name
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return err
		}
		sum := crc32.NewIEEE()
		_, _ = sum.Write(head[4:])
		if _, err := io.CopyN(sum, from, int64(binary.BigEndian.Uint32(head[:4]))); err != nil {
			return err
		}
		var want [4]byte
		if _, err := io.ReadFull(from, want[:]); err != nil {
			return err
		}
		if binary.BigEndian.Uint32(want[:]) != sum.Sum32() {
			return fmt.Errorf("the checksum of its part %q is wrong", head[4:])
		}
		if string(head[4:]) == "IEND" {
			return nil
		}
	}
}

// The markers of JPEG that matter for its structure.
const (
	jpegStart, jpegEnd, jpegScan    = 0xd8, 0xd9, 0xda
	jpegRestartFirst, jpegLast      = 0xd0, 0xd7
	jpegStuffed, jpegFill, jpegTemp = 0x00, 0xff, 0x01
)

// endOfJPEG reads the segments of a JPEG image up to the marker of its end. The data of a scan has no length: it ends with the next marker.
func endOfJPEG(from *bufio.Reader) error {
	inScan := false
	for {
		b, err := from.ReadByte()
		if err != nil {
			return err
		}
		if b != 0xff {
			if !inScan {
				return errors.New("it has data between its segments")
			}
			continue
		}
		marker := byte(jpegFill)
		for marker == jpegFill {
			if marker, err = from.ReadByte(); err != nil {
				return err
			}
		}
		switch {
		case marker == jpegEnd:
			return nil
		case marker == jpegStuffed && inScan, marker >= jpegRestartFirst && marker <= jpegLast, marker == jpegStart, marker == jpegTemp:
			continue // these have no content
		}
		var length [2]byte
		if _, err := io.ReadFull(from, length[:]); err != nil {
			return err
		}
		if err := skip(from, int64(binary.BigEndian.Uint16(length[:]))-2); err != nil {
			return err
		}
		inScan = marker == jpegScan
	}
}

// endOfGIF reads the blocks of a GIF image up to its trailer.
func endOfGIF(from *bufio.Reader) error {
	var head [13]byte // signature, and the description of the screen
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return err
	}
	if err := skip(from, tableSize(head[10])); err != nil {
		return err
	}
	for {
		kind, err := from.ReadByte()
		if err != nil {
			return err
		}
		switch kind {
		case 0x3b: // trailer
			return nil
		case 0x21: // extension: its label
			err = skip(from, 1)
		case 0x2c: // picture: its description, its colours, and the size of its codes
			var description [9]byte
			if _, err = io.ReadFull(from, description[:]); err == nil {
				err = skip(from, tableSize(description[8])+1)
			}
		default:
			return fmt.Errorf("it has a block of the unknown kind %#x", kind)
		}
		if err == nil {
			err = skipBlocks(from)
		}
		if err != nil {
			return err
		}
	}
}

// tableSize returns the size of the table of colours that follows, from the flags before it.
func tableSize(flags byte) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// skipBlocks reads blocks, which begin with their length, up to an empty one.
func skipBlocks(from *bufio.Reader) error {
	for {
		length, err := from.ReadByte()
		if err != nil || length == 0 {
			return err
		}
		if err := skip(from, int64(length)); err != nil {
			return err
		}
	}
}
