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

	uploadIdle    = 30 * time.Second // without a byte an upload is over
	uploadSlowest = 1 << 10          // bytes a second on the whole, once that time has passed: drops do not keep a place for ever
	storeWithin   = 2 * time.Minute  // for the storage, once all of the file has come
	uploadParts   = 8                // of a form; two are needed
	uploadExtra   = 16 << 10         // bytes of a form between two contents: boundaries and what is said of a part
	mappingBytes  = 256              // of a mapping's name; fewer are good ones
	courtesy      = 4                // times as much as a file may have is read of an upload that was refused already
)

// An intake reads one upload: a form of a file and a mapping, in either order. The file goes to the uploads as it comes, and is never in memory.
type intake struct {
	to    blob.Store
	most  int64 // bytes of a file
	says  int64 // bytes of the request, if it says how many; else less than one
	body  *pace
	parts *multipart.Reader

	id      holdfast.ID
	job     Conversion
	file    bool  // there was one
	stored  bool  // and it lies among the uploads
	stays   bool  // also where the upload comes to nothing: it may belong to a job
	mapping bool  // one was chosen
	refused error // why the file was not taken: the rest was read for politeness, so that whoever sends it hears the answer
}

// newIntake looks at what is said of the body, and reads none of it.
func (a *app) newIntake(w http.ResponseWriter, r *http.Request) (*intake, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	boundary := params["boundary"]
	switch {
	case err != nil || kind != "multipart/form-data":
		return nil, senseless("Send a form (multipart/form-data) with a PDF as file: curl -F file=@name.pdf -F mapping=text ...")
	case boundary == "" || len(boundary) > 70:
		return nil, senseless("The form's Content-Type names no boundary of 1 to 70 characters: leave that header to the program that makes the form.")
	case !plainEncoding(r.Header["Content-Encoding"]):
		return nil, senseless("Send the form as it is, without a Content-Encoding.")
	}
	body := &pace{from: r.Body, control: http.NewResponseController(w), begun: time.Now()}
	return &intake{
		to: a.uploads, most: a.set.MaxUpload, says: r.ContentLength, body: body, parts: multipart.NewReader(body, boundary),
		id: holdfast.NewID(), job: Conversion{Mapping: defaultMapping},
	}, nil
}

func plainEncoding(given []string) bool {
	for _, one := range given {
		if one != "" && !strings.EqualFold(one, "identity") {
			return false
		}
	}
	return true
}

// read reads the whole form, to its last byte: half a request is none.
func (i *intake) read(ctx context.Context) error {
	for n := 0; ; n++ {
		i.body.left = uploadExtra
		part, err := i.parts.NextRawPart()
		switch {
		case err == io.EOF: // this very value: a form that broke off wraps it
			return i.end()
		case err != nil:
			return i.body.why(err)
		case n == uploadParts:
			return senseless("The form has too many parts: send one file and one mapping.")
		}
		if err = i.part(ctx, part); err != nil {
			return err
		}
	}
}

func (i *intake) end() error {
	i.body.left = uploadExtra
	if _, err := io.Copy(io.Discard, i.body); err != nil {
		return i.body.why(err)
	}
	switch {
	case !i.file:
		return senseless("The form has no file: send a PDF in the part named file, as in curl -F file=@name.pdf ...")
	case i.job.Name == "" && i.job.Bytes == 0:
		return senseless("No file was chosen: choose a PDF first.")
	}
	i.job.Name = cleanName(i.job.Name)
	return i.refused
}

func (i *intake) part(ctx context.Context, part *multipart.Part) error {
	kind, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil || kind != "form-data" {
		return senseless("A part of the form does not say its name: send one file and one mapping.")
	}
	fileName, isFile := params["filename"]
	switch name := params["name"]; {
	case name == "mapping" && i.mapping:
		return senseless("The form has two mappings: send one.")
	case name == "mapping":
		return i.takeMapping(part)
	case name == "file" && i.file:
		return senseless("The form has two files: send each in a form of its own.")
	case name == "file" && !isFile:
		return senseless("The part named file is no file: with curl, write -F file=@name.pdf, with the @.")
	case name == "file":
		i.job.Name = fileName
		return i.takeFile(ctx, part)
	}
	return senseless("The form has a part that nobody knows: send one file and one mapping.")
}

// takeMapping takes the mapping's name. Whether there is such a mapping is the gateway's to say.
func (i *intake) takeMapping(part io.Reader) error {
	value, err := io.ReadAll(io.LimitReader(part, mappingBytes+1))
	switch name := strings.TrimSpace(string(value)); {
	case err != nil:
		return i.body.why(err)
	case len(value) > mappingBytes || name != "" && !mappingName.MatchString(name):
		return senseless("This is no mapping's name: use lower-case letters, digits, - and _, as in text, layout or fields.")
	case name != "":
		i.job.Mapping = name
	}
	i.mapping = true
	return nil
}

// takeFile stores the file, counts and hashes it on the way, and stops where it cannot become a conversion.
func (i *intake) takeFile(ctx context.Context, part io.Reader) error {
	i.file = true
	if i.says > i.most+uploadParts*uploadExtra {
		return tooLarge // it cannot fit: none of it is looked at
	}
	i.body.left = i.most + uploadExtra
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // who went away is noticed by what does not come
	defer cancel()
	late := time.AfterFunc(math.MaxInt64, cancel)
	defer late.Stop()
	from := &measure{from: part, most: i.most, sum: sha256.New(), end: func() { late.Reset(storeWithin) }}
	look := &shape{from: from}
	i.job.Source = sourceKey(i.id)
	_, err := i.to.Put(ctx, i.job.Source, look)
	i.stored = err == nil
	if err != nil { // whoever sends it is told when all of it has come, unless it is too much
		_, _ = io.Copy(io.Discard, from)
	}
	i.job.Bytes, i.job.SHA256 = from.n, hex.EncodeToString(from.sum.Sum(nil))
	switch {
	case from.n > i.most:
		return tooLarge
	case from.err != nil && from.err != io.EOF:
		return i.body.why(from.err)
	case errors.As(look.err, new(notPDF)):
		i.refused = look.err
	default:
		i.refused = err
	}
	return nil
}

// A measure counts and hashes what it reads, and ends it where it is too much.
type measure struct {
	from io.Reader
	most int64
	n    int64
	sum  hash.Hash
	err  error
	end  func() // called when all of it was read
}

// Read reads on, as long as it is not too much.
func (m *measure) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.from.Read(p)
	_, _ = m.sum.Write(p[:n]) // it never fails
	if m.n += int64(n); m.n > m.most {
		err = tooLarge
	}
	if m.err = err; err != nil {
		m.end()
	}
	return n, err
}

// A pace reads a request's body while it keeps coming, and no more of it than is left at this point.
type pace struct {
	from    io.Reader
	control *http.ResponseController
	begun   time.Time
	moved   time.Time // when the deadline was last moved along
	n, left int64
	over    bool // it was read to its end
	broken  bool // nothing more of it will come
}

var errOverlong = errors.New("more between two contents of a form than is allowed")

// Read reads on, as long as there is something left.
func (p *pace) Read(to []byte) (int, error) {
	p.hurry()
	n, err := p.from.Read(to[:min(int64(len(to)), max(p.left, 1))]) // where nothing is left it may yet have come to its end
	p.n += int64(n)
	if p.left -= int64(n); p.left < 0 {
		return 0, errOverlong
	}
	p.over, p.broken = p.over || err == io.EOF, p.broken || err != nil
	return n, err
}

// hurry moves the deadline along: not at every read, because it comes at a price.
func (p *pace) hurry() {
	now := time.Now()
	if now.Sub(p.moved) < time.Second {
		return
	}
	p.moved = now
	slowest := p.begun.Add(uploadIdle + time.Duration(p.n/uploadSlowest)*time.Second)
	if idle := now.Add(uploadIdle); idle.Before(slowest) {
		slowest = idle
	}
	_ = p.control.SetReadDeadline(slowest) // a recorder of a test has none
}

// rest ends the reading. Most programs send all of a body before they look for an answer, so what is left of it is read, up to as much: else they would hear of
// a broken connection and of nothing else. What is more than that is given up together with the connection.
func (p *pace) rest(header http.Header, most int64) {
	if p.left = most; !p.broken {
		_, _ = io.Copy(io.Discard, p)
	}
	if p.over {
		_ = p.control.SetReadDeadline(time.Time{}) // else the connection would count as lost while the answer is made
		return
	}
	header.Set("Connection", "close")
}

// why says what kept a form from being read.
func (p *pace) why(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return stalled
	case errors.Is(err, errOverlong), errors.Is(err, multipart.ErrMessageTooLarge):
		return senseless("What the form says about its parts is too long: send one file and one mapping.")
	}
	told := brokenOff
	told.cause = err
	return told
}

// unnamed is what a file is called that has no name.
const unnamed = "unnamed.pdf"

// cleanName makes of what a client calls a file something that can be shown: a name without folders, without what moves a cursor or turns the direction of
// writing, and of at most 255 bytes. It is for people only; no file is ever called so here.
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
