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
	maxXML        = 1 << 30         // bytes of a gateway's answer
	maxErrorBody  = 64 << 10        // bytes that are read of an error answer
	healthTimeout = 5 * time.Second // a gateway that takes longer to answer /healthz counts as down
)

// callGateway sends the PDF of a job to the gateway. The response body is XML that is still being sent: it is complete only once it was read to its end without an error.
func (a *app) callGateway(ctx context.Context, job *engine.Job[Conversion], source *blob.File) (*http.Response, error) {
	where := a.set.GatewayURL + "/convert?mapping=" + url.QueryEscape(job.Args.Mapping)
	local := &localReader{from: source}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, where, local)
	if err != nil {
		return nil, gatewayError{errors.New("GATEWAY_URL is not a valid address")}
	}
	request.ContentLength = source.Size
	if source.Size == 0 {
		request.Body = http.NoBody
	}
	request.GetBody = func() (io.ReadCloser, error) { // for a retry on a new connection, when the old one was closed before anything was sent
		reopened, err := a.uploads.Open(ctx, job.Args.Source)
		if err != nil {
			return nil, err
		}
		return reopened, nil
	}
	request.Close = true // the next call may be much later and must not reuse a connection to a gateway that has restarted since
	request.Header.Set("Content-Type", "application/pdf")
	request.Header.Set("Accept", "application/xml")
	request.Header.Set("Idempotency-Key", job.ID.String())
	client := *a.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		if own := local.readError(); own != nil {
			return nil, storageFailure(own)
		}
		return nil, gatewayError{err}
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, gatewayFailure(response)
	}
	return response, nil
}

// gatewayFailure makes an error of a response without XML: its status, Retry-After and message.
func gatewayFailure(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // part of an error text is better than none
	body := struct{ Code, Message string }{}
	if json.Unmarshal(text, &body) != nil {
		body.Message = string(text)
	}
	var cause error
	if body.Message != "" {
		cause = errors.New(body.Message)
	}
	err := failure.With(failure.NewHTTPError(response.StatusCode, response.Header, cause), "gateway_http_status", strconv.Itoa(response.StatusCode))
	if body.Code != "" {
		err = failure.With(err, "gateway_code", body.Code)
	}
	if message := displayable(body.Message); message != "" {
		err = failure.With(err, gatewayMessage, message)
	}
	return gatewayError{err}
}

// gatewayMessage is the key of a failure's context for the gateway's message, if that may be shown to users.
const gatewayMessage = "gateway_message"

// displayable returns a gateway's message if users may see it, or "". It must be one line of at most 200 bytes without paths, secrets or markup.
func displayable(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	unfit := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(`<>{}\`, r) }
	if message == "" || len(message) > 200 || strings.ContainsFunc(message, unfit) || failure.Scrub(message) != message {
		return ""
	}
	return strings.TrimRight(message, ".") + "."
}

// probeGateway is the breaker's health probe: while the breaker is open it checks the gateway, so that no job is spent on it. It fails until the cooldown is over.
func (a *app) probeGateway(ctx context.Context) error {
	b, err := a.operator.Breaker(ctx, dependencyGateway)
	if err == nil && time.Since(b.Since) < a.set.CircuitCooldown {
		err = errors.New("the breaker opened a moment ago: waiting for CIRCUIT_COOLDOWN_MS")
	}
	if err != nil {
		return err
	}
	return a.checkGateway(ctx)
}

// errNoConnection means that no connection to the gateway could be opened.
var errNoConnection = errors.New("no connection to the gateway")

// checkGateway asks the gateway for its health. Any answer below 500 counts as healthy, also from a gateway without /healthz.
func (a *app) checkGateway(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.set.GatewayURL+"/healthz", nil)
	if err != nil {
		return errors.New("GATEWAY_URL is not a valid address")
	}
	request.Close = true
	response, err := a.http.Do(request)
	if failed := new(net.OpError); errors.As(err, &failed) && failed.Op == "dial" {
		return errNoConnection
	}
	if err != nil {
		return errors.New("the gateway does not answer")
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxErrorBody)
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("the gateway is not healthy: status %d", response.StatusCode)
	}
	return nil
}

// A gatewayError is an error of the gateway or of the connection to it.
type gatewayError struct{ error }

func (e gatewayError) Unwrap() error { return e.error }

// pause waits for a duration or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// A localReader reads a file that is sent to the gateway and keeps read errors, so that an error of our storage is not blamed on the gateway.
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

func (l *localReader) readError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// An xmlReader passes a gateway's answer through and checks it on the way. It returns io.EOF only if the answer is one complete XML document, and another error
// otherwise. It keeps that error in err, so that the caller can distinguish it from an error of the writer.
type xmlReader struct {
	from    io.Reader
	left    int64
	sum     hash.Hash
	to      *io.PipeWriter
	checked chan error // the result of the check
	err     error
}

func newXMLReader(from io.Reader) *xmlReader {
	pipe, to := io.Pipe()
	x := &xmlReader{from: from, left: maxXML, sum: sha256.New(), to: to, checked: make(chan error, 1)}
	go func() {
		err := checkXML(pipe)
		_ = pipe.CloseWithError(err)
		x.checked <- err
	}()
	return x
}

// Close ends the check of an answer that is not read to its end.
func (x *xmlReader) Close() error { return x.to.CloseWithError(io.ErrClosedPipe) }

func (x *xmlReader) Read(p []byte) (n int, err error) {
	if x.err != nil {
		return 0, x.err
	}
	n, err = x.from.Read(p)
	if x.left -= int64(n); x.left < 0 {
		err = errors.New("the gateway's answer is larger than 1 GiB")
	}
	if n > 0 && (err == nil || errors.Is(err, io.EOF)) {
		x.sum.Write(p[:n])
		if _, bad := x.to.Write(p[:n]); bad != nil {
			err = bad
		}
	}
	if err == io.EOF { //nolint:errorlint // io.EOF itself marks the end
		_ = x.to.Close()
		if bad := <-x.checked; bad != nil {
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

// checkXML reads a document to its end. It must be well-formed and have one root element with only white space and comments around it.
func checkXML(from io.Reader) error {
	decoder := xml.NewDecoder(from)
	decoder.CharsetReader = singleByte
	depth, roots := 0, 0
	for {
		token, err := decoder.Token()
		if err == io.EOF { //nolint:errorlint // io.EOF itself marks the end
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
				return errors.New("the gateway's answer is not well-formed XML: text outside the root element")
			}
		}
	}
	if depth != 0 || roots != 1 {
		return errors.New("the gateway's answer is not one complete XML document")
	}
	return nil
}

// singleByte decodes encodings in which every byte is one character and the first 128 are ASCII. Which characters the others are does not matter: only the structure of
// the document is checked. The decoder does not call it for UTF-8.
func singleByte(label string, from io.Reader) (io.Reader, error) {
	label = strings.ToLower(label)
	if label != "us-ascii" && !strings.HasPrefix(label, "iso-8859-") && !strings.HasPrefix(label, "windows-125") {
		return nil, errors.New("unsupported encoding: use UTF-8")
	}
	return &singleByteReader{from: from}, nil
}

// A singleByteReader turns each byte into one character of UTF-8.
type singleByteReader struct {
	from io.Reader
	left []byte
}

func (w *singleByteReader) Read(p []byte) (int, error) {
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
