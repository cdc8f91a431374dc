package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
)

// A pdfChecker passes a file through and checks that it looks like a PDF and like nothing else. For any other file, reading ends with a notPDF instead of io.EOF. Whether
// the PDF is valid inside is checked by the gateway.
//
// It inspects only the beginning and the end of the file, where formats identify themselves. The contents of a PDF's streams, such as an attached archive, are not
// inspected.
type pdfChecker struct {
	from io.Reader
	head []byte // the first bytes, up to headBytes
	tail []byte // the last bytes, up to tailBytes: a ring buffer
	n    int64  // bytes read
	err  error
}

const (
	headBytes = 4 << 10
	tailBytes = 22 + 1<<16 // the end-of-archive record of a ZIP file is at most this far from the end
)

// notPDF is the reason why a file is refused, for operators.
type notPDF string

func (n notPDF) Error() string { return "not a PDF: " + string(n) }

// Read passes on what it reads. Once the file is known not to be a PDF, it returns only a notPDF.
func (s *pdfChecker) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.from.Read(p)
	s.record(p[:n])
	switch {
	case err == io.EOF:
		if err = s.checkFile(); err == nil {
			err = io.EOF
		}
	case err == nil && s.n >= int64(len("%PDF-1.7")):
		err = s.checkHeader()
	}
	s.err = err
	return n, err
}

func (s *pdfChecker) record(p []byte) {
	if s.tail == nil {
		s.tail = make([]byte, tailBytes)
	}
	s.head = append(s.head, p[:min(len(p), headBytes-len(s.head))]...)
	for len(p) > 0 {
		done := copy(s.tail[s.n%tailBytes:], p)
		s.n += int64(done)
		p = p[done:]
	}
}

// end returns the last bytes of the file, in order.
func (s *pdfChecker) end() []byte {
	if s.n <= tailBytes {
		return s.tail[:s.n]
	}
	cut := s.n % tailBytes
	return append(bytes.Clone(s.tail[cut:]), s.tail[:cut]...)
}

var (
	header = regexp.MustCompile(`^%PDF-[0-9]\.[0-9]`)
	object = regexp.MustCompile(`[0-9][\x00\t\n\f\r ]+[0-9]+[\x00\t\n\f\r ]+obj`)
	markup = regexp.MustCompile(`(?i)<(!doctype|html|head|body|script|svg|iframe|object|embed|img|style|meta|\?php|\?xml|%@)`)

	archiveSigns = []string{"PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "PK\x06\x06", "Rar!\x1a\x07", "7z\xbc\xaf\x27\x1c"}
)

const white = "\x00\t\n\f\r " // the white space of PDF

func (s *pdfChecker) checkHeader() error {
	if !header.Match(s.head) {
		return notPDF("it does not begin with %PDF- and a version")
	}
	return nil
}

// checkFile checks the whole file. The result does not depend on how the file was split into reads. Linearised and updated files contain more than one %%EOF: the last
// one counts.
func (s *pdfChecker) checkFile() error {
	if err := s.checkHeader(); err != nil {
		return err
	}
	start := s.head
	if at := object.FindIndex(start); at != nil {
		start = start[:at[0]]
	}
	if err := findOtherFormat("before its first object", start); err != nil {
		return err
	}
	if len(s.head) > 262 && string(s.head[257:262]) == "ustar" {
		return notPDF("it is also a tar archive")
	}
	end := s.end()
	if !bytes.HasSuffix(bytes.TrimRight(end, white), []byte("%%EOF")) {
		return notPDF("it does not end with %%EOF: it was cut off, or other data follows")
	}
	if isArchive(end) {
		return notPDF("it is also a ZIP archive")
	}
	last := max(bytes.LastIndex(end, []byte("endobj")), bytes.LastIndex(end, []byte("endstream")), 0)
	return findOtherFormat("after its last object", end[last:])
}

// findOtherFormat finds markup and archives, which make other programs treat a file as something else.
func findOtherFormat(where string, text []byte) error {
	if found := markup.Find(text); found != nil {
		return notPDF(fmt.Sprintf("it contains markup (%s) %s", found, where))
	}
	for _, sign := range archiveSigns {
		if bytes.Contains(text, []byte(sign)) {
			return notPDF("it contains an archive " + where)
		}
	}
	return nil
}

// isArchive reports whether the end of a file makes it a ZIP archive: an end-of-archive record whose comment reaches exactly to the end of the file. The comment could
// contain everything that makes it look like the end of a PDF.
func isArchive(end []byte) bool {
	for from := 0; ; {
		at := bytes.Index(end[from:], []byte("PK\x05\x06"))
		if at < 0 || from+at+22 > len(end) {
			return false
		}
		from += at
		if comment := int(binary.LittleEndian.Uint16(end[from+20:])); from+22+comment == len(end) {
			return true
		}
		from++
	}
}
