package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

const (
	maxXML        = 1 << 30         // bytes of an answer; more is no document that somebody wants
	maxComplaint  = 64 << 10        // bytes of an answer that is no XML
	healthTimeout = 5 * time.Second // a gateway that needs longer to say that it is well is not
)

// ask has the gateway convert the PDF of a job. The answer is XML under way; until its last byte was read nobody knows whether it is whole.
func (a *app) ask(ctx context.Context, job *engine.Job[Conversion], source *blob.File) (*http.Response, error) {
	where := a.set.GatewayURL + "/convert?mapping=" + url.QueryEscape(job.Args.Mapping)
	local := &localReader{from: source}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, where, local)
	if err != nil {
		return nil, gatewayError{errors.New("the address of the gateway makes no sense")}
	}
	request.ContentLength = source.Size
	if source.Size == 0 {
		request.Body = http.NoBody
	}
	request.GetBody = func() (io.ReadCloser, error) { // the connection may have been closed before anything was read
		again, err := a.uploads.Open(ctx, job.Args.Source)
		if err != nil {
			return nil, err
		}
		return again, nil
	}
	request.Close = true // the next call comes much later, and must not meet the connection of a gateway that was restarted since
	request.Header.Set("Content-Type", "application/pdf")
	request.Header.Set("Accept", "application/xml")
	request.Header.Set("Idempotency-Key", job.ID.String())
	client := *a.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		if own := local.trouble(); own != nil {
			return nil, stored(own)
		}
		return nil, gatewayError{err}
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, complaint(response)
	}
	return response, nil
}

// complaint is the error of an answer that is no XML: its status, how long the gateway asks us to wait, and what it says.
func complaint(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxComplaint)) // a complaint that breaks off is one
	said := struct{ Code, Message string }{}
	if json.Unmarshal(text, &said) != nil {
		said.Message = string(text)
	}
	date, _ := http.ParseTime(response.Header.Get("Date"))
	var cause error
	if said.Message != "" {
		cause = errors.New(said.Message)
	}
	err := failure.HTTPErrorAt(response.StatusCode, response.Header.Get("Retry-After"), date, cause)
	err = failure.With(err, "gateway_http_status", strconv.Itoa(response.StatusCode))
	if said.Code != "" {
		err = failure.With(err, "gateway_code", said.Code)
	}
	if message := fit(said.Message); message != "" {
		err = failure.With(err, gatewayMessage, message)
	}
	return gatewayError{err}
}

// gatewayMessage is where a failure keeps what the gateway said, if that is fit to be shown.
const gatewayMessage = "gateway_message"

// fit is a gateway's message as people may see it, or nothing: no path, no secret, no markup, one short line.
func fit(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	unfit := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(`<>{}\`, r) }
	if message == "" || len(message) > 200 || strings.ContainsFunc(message, unfit) || failure.Scrub(message) != message {
		return ""
	}
	return strings.TrimRight(message, ".") + "."
}

// gatewayBack is the health probe: while the breaker is open it asks the gateway, so that no job has to. It believes nothing before the cooldown is over.
func (a *app) gatewayBack(ctx context.Context) error {
	b, err := a.desk.Breaker(ctx, dependencyGateway)
	if err == nil && time.Since(b.Since) < a.set.CircuitCooldown {
		err = errors.New("the breaker has opened a moment ago: the gateway is given time")
	}
	if err != nil {
		return err
	}
	return a.gatewayWell(ctx)
}

// errNobody: no connection comes about.
var errNobody = errors.New("nobody answers at the gateway's address")

// gatewayWell asks the gateway whether it is well. A gateway that answers and knows no /healthz is.
func (a *app) gatewayWell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.set.GatewayURL+"/healthz", nil)
	if err != nil {
		return errors.New("the address of the gateway makes no sense")
	}
	request.Close = true
	response, err := a.http.Do(request)
	if failed := new(net.OpError); errors.As(err, &failed) && failed.Op == "dial" {
		return errNobody
	}
	if err != nil {
		return errors.New("the gateway does not answer")
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxComplaint)
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("the gateway says that it is not well: status %d", response.StatusCode)
	}
	return nil
}

// A gatewayError is what went wrong with the gateway, or on the way to it.
type gatewayError struct{ error }

func (e gatewayError) Unwrap() error { return e.error }

// pause lets time pass, or less when nobody wants it any more.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// A localReader reads a file of ours for somebody else, and remembers when that failed: then it is not theirs to answer for.
type localReader struct {
	from *blob.File

	mu  sync.Mutex
	err error
}

func (l *localReader) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		l.mu.Lock()
		l.err = err
		l.mu.Unlock()
	}
	return n, err
}

func (l *localReader) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// An xmlReader lets a gateway's answer through, and ends it with an error unless it is one whole XML document: what is read from it to the end is. It
// keeps the error, because whoever reads may have errors too.
type xmlReader struct {
	from    io.Reader
	left    int64
	sum     hash.Hash
	to      *io.PipeWriter
	verdict chan error
	err     error
}

func newXMLReader(from io.Reader) *xmlReader {
	pipe, to := io.Pipe()
	x := &xmlReader{from: from, left: maxXML, sum: sha256.New(), to: to, verdict: make(chan error, 1)}
	go func() {
		err := wholeXML(pipe)
		_ = pipe.CloseWithError(err)
		x.verdict <- err
	}()
	return x
}

// Close ends the check of an answer that nobody reads on.
func (x *xmlReader) Close() error { return x.to.CloseWithError(io.ErrClosedPipe) }

func (x *xmlReader) Read(p []byte) (n int, err error) {
	if x.err != nil {
		return 0, x.err
	}
	n, err = x.from.Read(p)
	if x.left -= int64(n); x.left < 0 {
		err = errors.New("the gateway's answer has no end")
	}
	if n > 0 && (err == nil || errors.Is(err, io.EOF)) {
		x.sum.Write(p[:n])
		if _, bad := x.to.Write(p[:n]); bad != nil {
			err = bad
		}
	}
	if err == io.EOF { //nolint:errorlint // this very value is the end
		_ = x.to.Close()
		if bad := <-x.verdict; bad != nil {
			err = bad
		}
	}
	if err != nil && err != io.EOF { //nolint:errorlint // as above
		x.err, n = gatewayError{err}, 0
		return n, x.err
	}
	return n, err
}

func (x *xmlReader) sha256() string { return hex.EncodeToString(x.sum.Sum(nil)) }

// wholeXML reads a document to its end: it is well-formed, and has one root with nothing but white space and comments around it.
func wholeXML(from io.Reader) error {
	decoder := xml.NewDecoder(from)
	decoder.CharsetReader = singleByte
	depth, roots := 0, 0
	for {
		token, err := decoder.Token()
		if err == io.EOF { //nolint:errorlint // this very value is the end
			break
		}
		if err != nil {
			return fmt.Errorf("the gateway's answer is not well-formed XML: %w", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			if depth == 0 && strings.TrimLeft(string(token), " \t\r\n\ufeff") != "" {
				return errors.New("the gateway's answer is not well-formed XML: text outside of the root")
			}
		}
	}
	if depth != 0 || roots != 1 {
		return errors.New("the gateway's answer is not one whole XML document")
	}
	return nil
}

// singleByte reads text in which every byte is a character and the first 128 are those of ASCII. Which characters the others are does not matter here: only
// the shape of the document is looked at. UTF-8 is not asked about.
func singleByte(label string, from io.Reader) (io.Reader, error) {
	label = strings.ToLower(label)
	if label != "us-ascii" && !strings.HasPrefix(label, "iso-8859-") && !strings.HasPrefix(label, "windows-125") {
		return nil, errors.New("its encoding is not known here: UTF-8 always is")
	}
	return &widened{from: from}, nil
}

type widened struct {
	from io.Reader
	left []byte
}

func (w *widened) Read(p []byte) (int, error) {
	if len(w.left) == 0 {
		raw := make([]byte, 4096)
		n, err := w.from.Read(raw)
		if n == 0 {
			return 0, err
		}
		for _, b := range raw[:n] {
			w.left = utf8.AppendRune(w.left, rune(b))
		}
	}
	n := copy(p, w.left)
	w.left = w.left[n:]
	return n, nil
}
