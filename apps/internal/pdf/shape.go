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

// checkShape looks at both ends of a file: a PDF begins with its header and ends with its end mark, and before that it says where its table
// begins. What is cut has no such end; what is two files at once has something on the other side of it.
func checkShape(r io.ReaderAt, size int64) error {
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
	if err := checkBehind(r, end+int64(len(endMark)), size); err != nil {
		return err
	}
	if err := checkTable(r, end); err != nil {
		return err
	}
	return checkArchive(r, size)
}

// lastMark is where the last end mark stands, and -1 when there is none.
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

// checkBehind looks at what follows the end: white space, or an update that was cut off before its own end, or something that does not belong there.
func checkBehind(r io.ReaderAt, from, size int64) error {
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

// checkTable wants to be told, before the end, where the table of all objects begins, and that it is in the file.
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

// checkArchive finds a ZIP archive that has hidden the end of the PDF in its comment.
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
