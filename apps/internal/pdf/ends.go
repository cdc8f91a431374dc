package pdf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"regexp"
	"strconv"
)

const (
	headBytes = 1024
	tailBytes = 1 << 16
)

var (
	endMark    = []byte("%%EOF")
	beginMark  = []byte("%PDF-")
	unfinished = regexp.MustCompile(`^(\d+\s+\d+\s+obj|xref)`)
	lastTable  = regexp.MustCompile(`startxref\s+(\d+)\s*$`)
)

// checkEnds checks the beginning and the end of a file. A PDF begins with its header and ends with its end mark, before which it gives the position of its table. A file
// that was cut off has no such end. A file that is also another format has bytes before the header or after the end mark.
func checkEnds(r io.ReaderAt, size int64) error {
	head := make([]byte, min(size, headBytes))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch at := bytes.Index(head, beginMark); {
	case at < 0:
		return ErrNotPDF
	case at > 0:
		return ErrTwoFaced
	case len(head) < len(beginMark)+3 || !isDigit(head[5]) || head[6] != '.':
		return ErrNotPDF
	}
	end, err := lastMark(r, size)
	if err != nil {
		return err
	}
	if end < 0 {
		return ErrDamaged
	}
	if err := checkAfterEnd(r, end+int64(len(endMark)), size); err != nil {
		return err
	}
	if err := checkTable(r, end); err != nil {
		return err
	}
	return checkArchive(r, size)
}

// lastMark returns the position of the last end mark, or -1.
func lastMark(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, tailBytes+len(endMark))
	for to := size; to > 0; to -= tailBytes {
		from := max(0, to-tailBytes)
		part := buf[:min(to+int64(len(endMark)), size)-from]
		if _, err := r.ReadAt(part, from); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if at := bytes.LastIndex(part, endMark); at >= 0 {
			return from + int64(at), nil
		}
	}
	return -1, nil
}

// checkAfterEnd checks what follows the end mark: white space is allowed, an incomplete update is damage, and anything else is another format.
func checkAfterEnd(r io.ReaderAt, from, size int64) error {
	buf := make([]byte, tailBytes)
	for from < size {
		part := buf[:min(size-from, tailBytes)]
		if _, err := r.ReadAt(part, from); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if rest := bytes.TrimLeft(part, "\x00\t\n\f\r "); len(rest) > 0 {
			if unfinished.Match(rest) {
				return ErrDamaged
			}
			return ErrTwoFaced
		}
		from += int64(len(part))
	}
	return nil
}

// checkTable checks that the position of the table of objects is given before the end mark and is inside the file.
func checkTable(r io.ReaderAt, end int64) error {
	buf := make([]byte, min(end, headBytes))
	if _, err := r.ReadAt(buf, end-int64(len(buf))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	found := lastTable.FindSubmatch(buf)
	if found == nil {
		return ErrDamaged
	}
	if at, err := strconv.ParseInt(string(found[1]), 10, 64); err != nil || at >= end {
		return ErrDamaged
	}
	return nil
}

// checkArchive finds a ZIP archive whose comment contains the end of the PDF.
func checkArchive(r io.ReaderAt, size int64) error {
	const record = 22
	buf := make([]byte, min(size, 1<<16+record))
	if _, err := r.ReadAt(buf, size-int64(len(buf))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for at := 0; ; at++ {
		next := bytes.Index(buf[at:], []byte("PK\x05\x06"))
		if next < 0 || at+next+record > len(buf) {
			return nil
		}
		at += next
		if int(binary.LittleEndian.Uint16(buf[at+20:])) == len(buf)-at-record {
			return ErrTwoFaced
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
