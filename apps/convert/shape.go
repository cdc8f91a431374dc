package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
)

// A shape reads a file through and tells whether it has the shape of a PDF, and of nothing else: where a file that is none would have ended well, reading it
// ends with a notPDF. What lies inside is the gateway's to judge.
//
// It looks at both ends only, which is where formats say what they are. Whatever lies in a PDF's own streams, an attached archive too, is the PDF's affair.
type shape struct {
	from io.Reader
	head []byte // the first bytes, up to headBytes
	tail []byte // the last bytes, up to tailBytes: a ring
	n    int64  // so many bytes were read
	err  error
}

const (
	headBytes = 4 << 10
	tailBytes = 22 + 1<<16 // as far from its end as an archive may say that it is one
)

// notPDF says why, to operators.
type notPDF string

func (n notPDF) Error() string { return "not a PDF: " + string(n) }

// Read hands on what it reads. Once it is clear that this is no PDF, it says so and nothing else.
func (s *shape) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.from.Read(p)
	s.look(p[:n])
	switch {
	case err == io.EOF:
		if err = s.verdict(); err == nil {
			err = io.EOF
		}
	case err == nil && s.n >= int64(len("%PDF-1.7")):
		err = s.magic()
	}
	s.err = err
	return n, err
}

func (s *shape) look(p []byte) {
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

// end is the last of what was read, in order.
func (s *shape) end() []byte {
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

	archives = []string{"PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "PK\x06\x06", "Rar!\x1a\x07", "7z\xbc\xaf\x27\x1c"}
)

const white = "\x00\t\n\f\r " // as PDFs know it

func (s *shape) magic() error {
	if !header.Match(s.head) {
		return notPDF("it does not begin with %PDF- and a version")
	}
	return nil
}

// verdict is about the whole file, and the same however it was cut into reads. Linearised and updated files hold more than one %%EOF: the last one counts.
func (s *shape) verdict() error {
	if err := s.magic(); err != nil {
		return err
	}
	front := s.head
	if at := object.FindIndex(front); at != nil {
		front = front[:at[0]]
	}
	if err := foreign("before its first object", front); err != nil {
		return err
	}
	if len(s.head) > 262 && string(s.head[257:262]) == "ustar" {
		return notPDF("it is a tar archive too")
	}
	end := s.end()
	if !bytes.HasSuffix(bytes.TrimRight(end, white), []byte("%%EOF")) {
		return notPDF("it does not end with %%EOF: it was cut off, or something follows")
	}
	if isArchive(end) {
		return notPDF("it is a ZIP archive too")
	}
	last := max(bytes.LastIndex(end, []byte("endobj")), bytes.LastIndex(end, []byte("endstream")), 0)
	return foreign("behind its last object", end[last:])
}

// foreign finds what makes other programs take a file for something else.
func foreign(where string, text []byte) error {
	if found := markup.Find(text); found != nil {
		return notPDF(fmt.Sprintf("there is markup (%s) %s", found, where))
	}
	for _, sign := range archives {
		if bytes.Contains(text, []byte(sign)) {
			return notPDF("there is an archive " + where)
		}
	}
	return nil
}

// isArchive reports whether a file that ends so says that it is a ZIP archive: by a record whose comment reaches exactly to its end, and may hide all that makes it
// look like the end of a PDF.
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
