// Package media looks at videos, marks them and reads them, all with FFmpeg in a process of its own. The files are not trusted: the format is decided by their first bytes and
// forced on FFmpeg, which may open nothing but that file, with limits of time, memory and size. Errors have codes of package code.
package media

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"

	"github.com/holdfastdev/holdfast/apps/watermark/code"
)

// A format is what the first bytes of a file say. FFmpeg reads it as this and nothing else: some of its formats are lists of other files to open.
type format struct {
	demuxer string
	picture bool
}

const sniffed = 512 // bytes

// sniff returns the format of a file.
func sniff(path string) (format, error) {
	file, err := os.Open(path)
	if err != nil {
		if os.IsNotExist(err) {
			return format{}, code.New(code.InputMissing, err)
		}
		return format{}, code.New(code.DiskError, err)
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, sniffed)
	n, err := io.ReadFull(file, head)
	if n == 0 && err != nil && err != io.EOF {
		return format{}, code.New(code.DiskError, err)
	}
	if f, ok := formatOf(head[:n]); ok {
		return f, nil
	}
	return format{}, code.New(code.InputNotVideo, nil)
}

func formatOf(head []byte) (format, bool) {
	at := func(offset int, text string) bool {
		return len(head) >= offset+len(text) && string(head[offset:offset+len(text)]) == text
	}
	switch {
	case isMOV(head):
		return format{demuxer: "mov"}, true
	case bytes.HasPrefix(head, []byte{0x1A, 0x45, 0xDF, 0xA3}):
		return format{demuxer: "matroska"}, true
	case at(0, "RIFF") && at(8, "AVI "):
		return format{demuxer: "avi"}, true
	case at(0, "FLV\x01"):
		return format{demuxer: "flv"}, true
	case at(0, "OggS"):
		return format{demuxer: "ogg"}, true
	case len(head) > 188*2 && head[0] == 0x47 && head[188] == 0x47 && head[376] == 0x47:
		return format{demuxer: "mpegts"}, true
	case bytes.HasPrefix(head, []byte{0, 0, 1, 0xBA}):
		return format{demuxer: "mpeg"}, true
	case bytes.HasPrefix(head, []byte{0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11}):
		return format{demuxer: "asf"}, true
	case at(0, "\x89PNG\r\n\x1a\n"):
		return format{demuxer: "png_pipe", picture: true}, true
	case bytes.HasPrefix(head, []byte{0xFF, 0xD8, 0xFF}):
		return format{demuxer: "jpeg_pipe", picture: true}, true
	case at(0, "RIFF") && at(8, "WEBP"):
		return format{demuxer: "webp_pipe", picture: true}, true
	case at(0, "BM") && len(head) > 54 && binary.LittleEndian.Uint32(head[14:]) >= 40:
		return format{demuxer: "bmp_pipe", picture: true}, true
	}
	return format{}, false
}

// isMOV reports whether a file begins with one of the boxes of MP4 and QuickTime.
func isMOV(head []byte) bool {
	if len(head) < 8 {
		return false
	}
	switch string(head[4:8]) {
	case "ftyp", "moov", "mdat", "wide", "free", "skip", "pnot":
		return true
	}
	return false
}
