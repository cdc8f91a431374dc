package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/store"
)

// shaky is a file storage that fails when the test says so.
type shaky struct {
	blob.Store
	mu       sync.Mutex
	put, get func() error // nil: nothing is wrong
}

func (s *shaky) tell(put, get func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put, s.get = put, get
}

// Put fails in the middle, as a disk does.
func (s *shaky) Put(ctx context.Context, key string, from io.Reader) (blob.Info, error) {
	s.mu.Lock()
	put := s.put
	s.mu.Unlock()
	if put == nil {
		return s.Store.Put(ctx, key, from)
	}
	if err := put(); err != nil {
		_, _ = io.CopyN(io.Discard, from, 10)
		return blob.Info{}, err
	}
	return s.Store.Put(ctx, key, from)
}

// Open fails before anything is read.
func (s *shaky) Open(ctx context.Context, key string) (*blob.File, error) {
	s.mu.Lock()
	get := s.get
	s.mu.Unlock()
	if get != nil {
		if err := get(); err != nil {
			return nil, err
		}
	}
	return s.Store.Open(ctx, key)
}

var errDisk = errors.New("input/output error")

func every(err error) func() error { return func() error { return err } }

func resultOf(t testing.TB, job holdfast.Job) (r Result) {
	t.Helper()
	if err := json.Unmarshal(job.Result, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func codeOf(job holdfast.Job) string {
	if job.LastFailure == nil {
		return ""
	}
	return job.LastFailure.Code
}

// C3: the gateway is asked over HTTP, and its XML is kept.
func TestAPDFBecomesXML(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		s.works()
		id := s.enters(1)
		job := s.becomes(id, holdfast.Complete)
		calls := s.gateway.calls()
		if len(calls) != 1 || calls[0].mapping != "text" || calls[0].key != id.String() || string(calls[0].body) != string(samplePDF(1)) {
			t.Fatalf("the gateway was asked so: %+v", calls)
		}
		text := filesIn(t, s.set.Results)[resultKey(id)]
		expect(t, "XML", text, xmlOf("text", len(samplePDF(1))))
		want := Result{Key: resultKey(id), Bytes: int64(len(text)), SHA256: sha(text)}
		expect(t, "result", resultOf(t, job), want)
		artifacts, err := s.store.Artifacts(context.Background(), store.ArtifactFilter{Job: id})
		if err != nil || len(artifacts) != 2 {
			t.Errorf("source and result should be known: %v, %v", artifacts, err)
		}
		s.oneXML(id)
	})
}

// C10; 000 section 8: an existing result is success, and the gateway is not called again.
func TestAnAttemptThatFindsTheResultIsDone(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		id := s.enters(1)
		text := xmlOf("text", 7)
		if _, err := s.results.Put(context.Background(), resultKey(id), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		s.works()
		job := s.becomes(id, holdfast.Complete)
		expect(t, "calls", len(s.gateway.calls()), 0)
		expect(t, "result", resultOf(t, job), Result{Key: resultKey(id), Bytes: int64(len(text)), SHA256: sha(text), Found: true})
		s.oneXML(id)
	})
}

// Nothing is ever overwritten: the second attempt to finish uses the XML of the first.
func TestTheSecondAttemptToFinishKeepsTheFirstXML(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		first := xmlOf("text", 1)
		s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
			if _, err := s.results.Put(context.Background(), r.Header.Get("Idempotency-Key")+".xml", strings.NewReader(first)); err != nil {
				t.Error(err)
			}
			convertsIt(n, w, r)
		})
		s.works()
		id := s.enters(1)
		job := s.becomes(id, holdfast.Complete)
		expect(t, "result", resultOf(t, job), Result{Key: resultKey(id), Bytes: int64(len(first)), SHA256: sha(first), Found: true})
		expect(t, "failures", job.Failures, 0)
		expect(t, "XML", filesIn(t, s.set.Results)[resultKey(id)], first)
		s.oneXML(id)
	})
}

// C3: XML is written whole or not at all.
func TestAnAnswerThatIsNotCompleteXMLIsAGatewayErrorAndLeavesNothing(t *testing.T) {
	half := func(_ int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "<document><page>")
		panic(http.ErrAbortHandler)
	}
	elsewhere := func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			speak(w, 307, "", "Location", "/convert?mapping=other")
			return
		}
		convertsIt(n, w, r)
	}
	says := func(body string) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, _ *http.Request) { speak(w, http.StatusOK, body) }
	}
	cases := map[string]func(int, http.ResponseWriter, *http.Request){
		"broken off": half, "empty": says(""), "cut": says("<document><page>"), "no XML": says("It worked!"), "HTML": says("<html><br></html>"),
		"crossed": says("<a><b></a></b>"), "two roots": says("<a/><b/>"), "text behind": says("<a/>done"), "only a prolog": says(`<?xml version="1.0"?>`),
		"not UTF-8": says("<a>\xff\xfe</a>"), "a redirect": elsewhere,
		"no content": func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	}
	for name, does := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "", func(set *settings) { set.RetryMaxAttempts = 1 })
			s.gateway.does(does)
			s.works()
			id := s.enters(1)
			job := s.becomes(id, holdfast.Failed)
			expect(t, "code", codeOf(job), codeGW5XX)
			s.oneXML()
		})
	}
}

func TestXMLIsCheckedForCompleteness(t *testing.T) {
	for text, whole := range map[string]bool{
		"<a/>": true, "\ufeff<?xml version=\"1.0\"?>\n<!-- x --><a><b>x</b>&amp;</a>\n<!-- y -->\n": true,
		"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xe4</a>": true, "<x:a xmlns:x=\"urn:x\"/>": true,
		"<a>": false, "</a>": false, "a": false, "<a/>a": false, "<a/><a/>": false, "": false, "<a>&nbsp;</a>": false, "<a b=c/>": false, "<a>\x00</a>": false,
	} {
		if err := checkXML(strings.NewReader(text)); (err == nil) != whole {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnAnswerWithoutEndIsCutOff(t *testing.T) {
	x := newXMLReader(strings.NewReader("<a>" + strings.Repeat("x", 100) + "</a>"))
	defer x.Close()
	x.left = 50
	_, err := io.ReadAll(x)
	if trouble := (gatewayError{}); !errors.As(err, &trouble) {
		t.Errorf("it was taken: %v", err)
	}
}

// 000 section 10: a job whose source was deleted by retention fails at once with EXPIRED.
func TestAConversionWithoutItsPDFFailsAsExpired(t *testing.T) {
	s := newScene(t, "")
	id := s.enters(1)
	if err := s.uploads.Delete(context.Background(), sourceKey(id)); err != nil {
		t.Fatal(err)
	}
	s.works()
	job := s.becomes(id, holdfast.Failed)
	expect(t, "code", codeOf(job), codeExpired)
	expect(t, "attempts", job.Failures, 1)
	expect(t, "calls", len(s.gateway.calls()), 0)
}

// C3: an error of our file storage is IO_ERROR, and never counts against the gateway.
func TestAStorageErrorIsNotBlamedOnTheGateway(t *testing.T) {
	s := newScene(t, "", quick, func(set *settings) { set.CircuitWindow = 2 })
	uploads := &shaky{Store: s.uploads}
	s.app.uploads = uploads
	uploads.tell(nil, every(errDisk))
	s.works()
	for n := range 10 {
		id := s.enters(n)
		job := s.becomes(id, holdfast.Failed)
		expect(t, "code", codeOf(job), codeIO)
		expect(t, "dependency", job.LastFailure.Dependency, "")
	}
	expect(t, "breaker", s.breaker(), "closed")
	expect(t, "calls", len(s.gateway.calls()), 0)
}

// A PDF whose reading fails while it is sent is a storage error too, whatever the gateway answers.
func TestAPDFThatCannotBeReadToItsEndIsAStorageError(t *testing.T) {
	s := newScene(t, "", func(set *settings) { set.RetryMaxAttempts = 1 })
	s.app.uploads = torn{s.uploads}
	s.works()
	job := s.becomes(s.enters(1), holdfast.Failed)
	expect(t, "code", codeOf(job), codeIO)
	s.oneXML()
}

// torn is a file storage whose reads fail after some bytes.
type torn struct{ blob.Store }

// Open returns a file whose reads fail after some bytes.
func (s torn) Open(ctx context.Context, key string) (*blob.File, error) {
	file, err := s.Store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	return &blob.File{ReadSeekCloser: &tornFile{ReadSeekCloser: file}, Info: file.Info}, nil
}

type tornFile struct {
	io.ReadSeekCloser
	read int
}

// Read gives a little and then fails.
func (f *tornFile) Read(p []byte) (int, error) {
	if f.read++; f.read > 1 {
		return 0, errDisk
	}
	return f.ReadSeekCloser.Read(p[:min(len(p), 16)])
}

// 000 section 6: the gateway's own words are appended where they are safe.
func TestTheGatewaysMessageIsInTheFailure(t *testing.T) {
	s := newScene(t, "")
	s.gateway.says(406, `{"code":"INVALID_MAPPING","message":"Unsupported mapping."}`)
	s.works()
	job := s.becomes(s.enters(1), holdfast.Failed)
	code, line := s.publicFailure(job)
	expect(t, "code", code, codeGW4XX)
	expect(t, "line", line, "Couldn’t convert this file with the selected mapping. Unsupported mapping.")
	expect(t, "context", fmt.Sprint(job.LastFailure.Context["gateway_http_status"], job.LastFailure.Context["gateway_code"]), "406INVALID_MAPPING")
}

// C1: a refused file leaves a failed job with its code, whatever the code's own policy says.
func TestARefusalFailsAtOnceWithItsCode(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		s.works(queueRefuse)
		for _, code := range []string{codeNotPDF, codeTooLarge, codeIO, "NONSENSE"} {
			receipt, err := holdfast.Enqueue(context.Background(), s.store, Refusal{Name: "x", Code: code}, func(d *holdfast.Draft) { d.Queue = queueRefuse })
			if err != nil {
				t.Fatal(err)
			}
			job := s.becomes(receipt.ID, holdfast.Failed)
			expect(t, "code", codeOf(job), s.set.code(code).Name)
			expect(t, "attempts", job.Failures, 1)
		}
	})
}

// Workers of conversions leave refusals alone, and the other way round.
func TestAProcessWorksOnItsOwnQueuesOnly(t *testing.T) {
	s := newScene(t, "")
	s.works(queueRefuse)
	id := s.enters(1)
	refused, err := holdfast.Enqueue(context.Background(), s.store, Refusal{Code: codeNotPDF}, func(d *holdfast.Draft) { d.Queue = queueRefuse })
	if err != nil {
		t.Fatal(err)
	}
	s.becomes(refused.ID, holdfast.Failed)
	expect(t, "conversion", s.job(id).State, holdfast.Queued)
	s.joins(queueConvert)
	s.becomes(id, holdfast.Complete)
}

// A panic affects one job only, and is shown as UNKNOWN.
func TestAPanicShowsAsUnknown(t *testing.T) {
	s := newScene(t, "")
	s.app.uploads = explosive{s.uploads}
	s.works()
	id := s.enters(1)
	job := s.becomes(id, holdfast.Failed)
	code, line := s.publicFailure(job)
	expect(t, "shown", code+": "+line, "UNKNOWN: Something unexpected went wrong.")
}

type explosive struct{ blob.Store }

// Open panics.
func (explosive) Open(context.Context, string) (*blob.File, error) { panic("/srv/secret: boom") }

// A large answer is streamed without being held in memory, and is complete.
func TestALargeAnswerIsKeptWhole(t *testing.T) {
	const pages = 200_000
	var sent atomic.Int64
	s := newScene(t, "")
	s.gateway.does(func(_ int, w http.ResponseWriter, _ *http.Request) {
		write := func(text string) {
			n, _ := io.WriteString(w, text)
			sent.Add(int64(n))
		}
		write("<document>")
		for n := range pages {
			write(fmt.Sprintf("<page n=\"%d\">%s</page>\n", n, strings.Repeat("word ", 20)))
		}
		write("</document>")
	})
	s.works()
	id := s.enters(1)
	job := s.becomes(id, holdfast.Complete)
	text := filesIn(t, s.set.Results)[resultKey(id)]
	expect(t, "bytes", resultOf(t, job).Bytes, sent.Load())
	expect(t, "sha256", resultOf(t, job).SHA256, sha(text))
}

// afterwards calls a function after a file was written, and then hides the success.
type afterwards struct {
	blob.Store
	do func()
}

// Put puts the file and waits until the attempt is over.
func (s *afterwards) Put(ctx context.Context, key string, from io.Reader) (blob.Info, error) {
	_, err := s.Store.Put(ctx, key, from)
	if err == nil {
		s.do()
		<-ctx.Done()
		err = ctx.Err()
	}
	return blob.Info{}, err
}
