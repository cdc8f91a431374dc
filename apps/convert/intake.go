package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
)

const (
	defaultMapping = "text"

	uploadIdle    = 30 * time.Second // an upload that sends nothing for this long is ended
	uploadMinRate = 1 << 10          // bytes a second on average, after uploadIdle: a client that sends single bytes does not occupy a slot for ever
	storeTimeout  = 2 * time.Minute  // for the storage, once the whole file has arrived
	uploadParts   = 8                // parts of a form; two are needed
	uploadExtra   = 16 << 10         // bytes of a form between two contents: boundaries and part headers
	mappingBytes  = 256              // bytes that are read of a mapping's name; valid names are shorter
	drainFactor   = 4                // of a refused upload, up to this multiple of the largest file is read before the connection is closed
)

// An intake reads one upload: a form with a file and a mapping, in either order. The file is written to the uploads while it arrives and is never held in memory.
type intake struct {
	to            blob.Store
	maxBytes      int64 // of a file
	contentLength int64 // of the request; less than 1 if unknown
	body          *bodyReader
	parts         *multipart.Reader

	id         holdfast.ID
	job        Conversion
	hasFile    bool
	hasMapping bool
	stored     bool  // the file is in the uploads
	keepFile   bool  // do not delete the file even if the upload fails: it may belong to a job
	refused    error // why the file is refused; the rest of the form is still read, so that the client receives the answer
}

// newIntake checks the headers of an upload. It reads nothing of the body.
func (a *app) newIntake(w http.ResponseWriter, r *http.Request) (*intake, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	boundary := params["boundary"]
	switch {
	case err != nil || kind != "multipart/form-data":
		return nil, badRequest("Send a form (multipart/form-data) with a PDF in the part file: curl -F file=@name.pdf -F mapping=text ...")
	case boundary == "" || len(boundary) > 70:
		return nil, badRequest("The form's Content-Type has no boundary of 1 to 70 characters. Let your HTTP client set that header.")
	case !isIdentityEncoding(r.Header["Content-Encoding"]):
		return nil, badRequest("Send the form without a Content-Encoding.")
	}
	body := &bodyReader{from: r.Body, control: http.NewResponseController(w), begun: time.Now()}
	return &intake{
		to: a.uploads, maxBytes: a.set.MaxUpload, contentLength: r.ContentLength, body: body, parts: multipart.NewReader(body, boundary),
		id: holdfast.NewID(), job: Conversion{Mapping: defaultMapping},
	}, nil
}

func isIdentityEncoding(given []string) bool {
	for _, one := range given {
		if one != "" && !strings.EqualFold(one, "identity") {
			return false
		}
	}
	return true
}

// read reads the whole form. A form that ends early is an error.
func (i *intake) read(ctx context.Context) error {
	for n := 0; ; n++ {
		i.body.left = uploadExtra
		part, err := i.parts.NextRawPart()
		switch {
		case err == io.EOF: // io.EOF itself: a form that ends early wraps it
			return i.end()
		case err != nil:
			return i.body.readError(err)
		case n == uploadParts:
			return badRequest("The form has too many parts. Send one file and one mapping.")
		}
		if err = i.part(ctx, part); err != nil {
			return err
		}
	}
}

func (i *intake) end() error {
	i.body.left = uploadExtra
	if _, err := io.Copy(io.Discard, i.body); err != nil {
		return i.body.readError(err)
	}
	switch {
	case !i.hasFile:
		return badRequest("The form has no file. Send a PDF in the part file, as in curl -F file=@name.pdf ...")
	case i.job.Name == "" && i.job.Bytes == 0:
		return badRequest("No file was chosen. Please choose a PDF first.")
	}
	i.job.Name = cleanName(i.job.Name)
	return i.refused
}

func (i *intake) part(ctx context.Context, part *multipart.Part) error {
	kind, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil || kind != "form-data" {
		return badRequest("A part of the form has no name. Send one file and one mapping.")
	}
	fileName, isFile := params["filename"]
	switch name := params["name"]; {
	case name == "mapping" && i.hasMapping:
		return badRequest("The form has two mappings. Send one.")
	case name == "mapping":
		return i.readMapping(part)
	case name == "file" && i.hasFile:
		return badRequest("The form has two files. Send each file in its own form.")
	case name == "file" && !isFile:
		return badRequest("The part file contains no file. With curl, write -F file=@name.pdf, with the @.")
	case name == "file":
		i.job.Name = fileName
		return i.readFile(ctx, part)
	}
	return badRequest("The form has an unknown part. Send one file and one mapping.")
}

// readMapping reads the mapping's name. Whether the mapping exists is checked by the gateway.
func (i *intake) readMapping(part io.Reader) error {
	value, err := io.ReadAll(io.LimitReader(part, mappingBytes+1))
	switch name := strings.TrimSpace(string(value)); {
	case err != nil:
		return i.body.readError(err)
	case len(value) > mappingBytes || name != "" && !mappingName.MatchString(name):
		return badRequest("This is not the name of a mapping. Use lower-case letters, digits, - and _, as in text, layout or fields.")
	case name != "":
		i.job.Mapping = name
	}
	i.hasMapping = true
	return nil
}

// readFile stores the file, and counts and hashes it on the way. It stops early when the file is too large.
func (i *intake) readFile(ctx context.Context, part io.Reader) error {
	i.hasFile = true
	if i.contentLength > i.maxBytes+uploadParts*uploadExtra {
		return tooLarge // nothing of it has to be read
	}
	i.body.left = i.maxBytes + uploadExtra
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a client that went away is noticed by the read deadline
	defer cancel()
	late := time.AfterFunc(math.MaxInt64, cancel)
	defer late.Stop()
	from := &countingReader{from: part, max: i.maxBytes, sum: sha256.New(), end: func() { late.Reset(storeTimeout) }}
	checked := &pdfChecker{from: from}
	i.job.Source = sourceKey(i.id)
	_, err := i.to.Put(ctx, i.job.Source, checked)
	i.stored = err == nil
	if err != nil { // the client receives the answer after it has sent everything, unless that is too much
		_, _ = io.Copy(io.Discard, from)
	}
	i.job.Bytes, i.job.SHA256 = from.n, hex.EncodeToString(from.sum.Sum(nil))
	switch {
	case from.n > i.maxBytes:
		return tooLarge
	case from.err != nil && from.err != io.EOF:
		return i.body.readError(from.err)
	case errors.As(checked.err, new(notPDF)):
		i.refused = checked.err
	default:
		i.refused = err
	}
	return nil
}

// A countingReader counts and hashes what it reads, and fails when that is too much.
type countingReader struct {
	from io.Reader
	max  int64
	n    int64
	sum  hash.Hash
	err  error
	end  func() // called at the end of the input, or at an error
}

// Read returns tooLarge once more than max bytes were read.
func (m *countingReader) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.from.Read(p)
	_, _ = m.sum.Write(p[:n]) // Write of a hash never fails
	if m.n += int64(n); m.n > m.max {
		err = tooLarge
	}
	if m.err = err; err != nil {
		m.end()
	}
	return n, err
}

// A bodyReader reads a request's body, with a read deadline that moves as data arrives and a limit on what may still come at this point of the form.
type bodyReader struct {
	from    io.Reader
	control *http.ResponseController
	begun   time.Time
	moved   time.Time // when the deadline was last moved
	n, left int64     // bytes read, bytes that may still be read
	over    bool      // it was read to its end
	broken  bool      // a read failed, or it was read to its end
}

var errTooLong = errors.New("too many bytes between two contents of a form")

// Read fails once more than left bytes were read.
func (p *bodyReader) Read(to []byte) (int, error) {
	p.extendDeadline()
	n, err := p.from.Read(to[:min(int64(len(to)), max(p.left, 1))]) // with nothing left, one byte is read to find out whether the body has ended
	p.n += int64(n)
	if p.left -= int64(n); p.left < 0 {
		return 0, errTooLong
	}
	p.over, p.broken = p.over || err == io.EOF, p.broken || err != nil
	return n, err
}

// extendDeadline moves the read deadline, at most once a second because each call has a cost.
func (p *bodyReader) extendDeadline() {
	now := time.Now()
	if now.Sub(p.moved) < time.Second {
		return
	}
	p.moved = now
	deadline := p.begun.Add(uploadIdle + time.Duration(p.n/uploadMinRate)*time.Second)
	if idle := now.Add(uploadIdle); idle.Before(deadline) {
		deadline = idle
	}
	_ = p.control.SetReadDeadline(deadline) // the recorder of a test has no deadlines
}

// drain reads the rest of the body, up to limit bytes. Most clients send the whole body before they read the answer; if the server closed the connection earlier, they
// would see a connection error instead of the answer. If more than limit bytes remain, the connection is closed after the answer.
func (p *bodyReader) drain(header http.Header, limit int64) {
	if p.left = limit; !p.broken {
		_, _ = io.Copy(io.Discard, p)
	}
	if p.over {
		_ = p.control.SetReadDeadline(time.Time{}) // otherwise the connection would time out while the answer is prepared
		return
	}
	header.Set("Connection", "close")
}

// readError returns the answer for an error while the form was read.
func (p *bodyReader) readError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return stalled
	case errors.Is(err, errTooLong), errors.Is(err, multipart.ErrMessageTooLarge):
		return badRequest("The headers of the form's parts are too long. Send one file and one mapping.")
	}
	answer := interrupted
	answer.cause = err
	return answer
}

// unnamed is shown for a file without a name.
const unnamed = "unnamed.pdf"

// cleanName makes a client's file name safe to show: without folders, control characters and direction marks, and at most 255 bytes long. The name is only displayed;
// no file on the server has it.
func cleanName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case r < ' ', r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff: // controls, line ends, a byte order mark
			return -1
		case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // directions
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, string(utf8.RuneError)))
	name = strings.TrimSpace(name)
	if len(name) > 255 {
		end := ""
		if at := strings.LastIndexByte(name, '.'); at > 0 && len(name)-at <= 16 {
			end = name[at:]
		}
		cut := 255 - len(end)
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = strings.TrimSpace(name[:cut]) + end
	}
	if strings.Trim(name, ". ") == "" {
		return unnamed
	}
	return name
}
