package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// A slowGateway answers in two pieces, some time apart, so that there is always a worker in the middle of a conversion or of writing its result. What it answers
// names the PDF it was made of.
type slowGateway struct {
	*httptest.Server
	calls atomic.Int64 // under way
}

func newSlowGateway(t *testing.T) *slowGateway {
	g := &slowGateway{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /convert", g.convert)
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Server.CloseClientConnections)
	return g
}

func (g *slowGateway) convert(w http.ResponseWriter, r *http.Request) {
	g.calls.Add(1)
	defer g.calls.Add(-1)
	sum := sha256.New()
	if _, err := io.Copy(sum, r.Body); err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	xml := bigXML(hex.EncodeToString(sum.Sum(nil)))
	for _, piece := range []string{xml[:len(xml)/2], xml[len(xml)/2:]} {
		pause(r.Context(), slowness)
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// bigXML is the XML of a PDF with that sum: long enough to be written in pieces.
func bigXML(sum string) string {
	return `<?xml version="1.0"?>` + "\n<document of=\"" + sum + "\">" + strings.Repeat("<p>so it goes</p>\n", 8000) + "</document>\n"
}

// pdfNumber returns a PDF that differs from all others.
func pdfNumber(n int) []byte {
	return fmt.Appendf(nil, "%%PDF-1.4\n%% number %d\n%s\n%%%%EOF\n", n, strings.Repeat("% filling\n", 20_000))
}

// A crowd uploads files until each was acknowledged, and remembers under which id.
type crowd struct {
	t      *testing.T
	client *http.Client
	webs   []string

	uploading atomic.Int64 // in the middle of a body
	mu        sync.Mutex
	taken     map[string]string // sum of the PDF by the job's id
}

// all uploads files number 0 to n.
func (c *crowd) all(n int) {
	var work sync.WaitGroup
	numbers := make(chan int)
	for range 4 {
		work.Go(func() {
			for number := range numbers {
				for try := number; !c.upload(c.webs[try%len(c.webs)], pdfNumber(number)); try++ {
					pause(c.t.Context(), slowness/4)
				}
			}
		})
	}
	for number := range n {
		numbers <- number
	}
	close(numbers)
	work.Wait()
}

// upload sends one file in pieces, and reports whether it was acknowledged.
func (c *crowd) upload(web string, pdf []byte) bool {
	if c.t.Context().Err() != nil {
		return true
	}
	body, sink := io.Pipe()
	form := multipart.NewWriter(sink)
	go func() {
		part, err := form.CreateFormFile("file", "number.pdf")
		for rest := pdf; err == nil && len(rest) > 0; {
			c.uploading.Add(1)
			pause(c.t.Context(), slowness/8)
			piece := min(len(rest), 64<<10)
			_, err = part.Write(rest[:piece])
			rest = rest[piece:]
			c.uploading.Add(-1)
		}
		_ = form.Close()
		_ = sink.CloseWithError(err)
	}()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, web+"/api/upload", body)
	if err != nil {
		c.t.Error(err)
		return true
	}
	request.Header.Set("Content-Type", form.FormDataContentType())
	response, err := c.client.Do(request)
	if err != nil {
		return false // no connection, or a lost one
	}
	defer response.Body.Close()
	var v view
	if err := json.NewDecoder(response.Body).Decode(&v); err != nil {
		return false
	}
	if response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusOK {
		c.t.Logf("an upload is answered with %d, and tried again", response.StatusCode)
		return false
	}
	sum := sha256.Sum256(pdf)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken[v.ID] = hex.EncodeToString(sum[:])
	return true
}

// wholeResults checks that every visible result is complete, at any moment.
func wholeResults(ctx context.Context, dir string) (count int, err error) {
	files, err := blob.Open(ctx, dir)
	if err != nil {
		return 0, err
	}
	for info, err := range files.Older(ctx, 0, "") {
		if err != nil {
			return count, err
		}
		if info.Part {
			continue
		}
		file, err := files.Open(ctx, info.Key)
		if err != nil {
			return count, err
		}
		text, err := io.ReadAll(file)
		_ = file.Close()
		if err != nil || !bytes.HasSuffix(text, []byte("</document>\n")) {
			return count, fmt.Errorf("%s is seen with %d bytes: half a file (%w)", info.Key, len(text), err)
		}
		count++
	}
	return count, nil
}

// A fleet is the processes of one converter, on one store.
type fleet struct {
	t       *testing.T
	env     []string
	webs    []string // their addresses
	web     []*process
	worker  []*process
	results string
	client  *http.Client
}

func newFleet(t *testing.T, storeURL, gateway string, each int) *fleet {
	dir := t.TempDir()
	if storeURL == "" {
		storeURL = filepath.Join(dir, "jobs.db")
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, results: filepath.Join(dir, "results"), client: &http.Client{Jar: jar}}
	f.env = []string{
		"UPLOADS_PER_MINUTE=1000000", "DATA_DIR=" + dir, "DATABASE_URL=" + storeURL, "UPLOADS_DIR=" + filepath.Join(dir, "uploads"), "RESULTS_DIR=" + f.results, "GATEWAY_URL=" + gateway,
		"WORKER_LEASE_TTL_SEC=3", "RETRY_BASE_DELAY_MS=100", "RETRY_JITTER_MAX_MS=100", "WORKER_CONCURRENCY=3",
	}
	for n := range each {
		f.webs = append(f.webs, "http://"+freeAddress(t))
		f.web, f.worker = append(f.web, nil), append(f.worker, nil)
		f.startWeb(n)
		f.startWorker(n)
	}
	return f
}

func (f *fleet) startWeb(n int) {
	f.web[n] = launch(f.t, append(f.env, "ADDR="+strings.TrimPrefix(f.webs[n], "http://")), "The page is at ", "web")
}

func (f *fleet) startWorker(n int) { f.worker[n] = launch(f.t, f.env, "Worker ", "worker") }

// jobs lists everything that the session has.
func (f *fleet) jobs() (all []view) {
	f.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Jobs       []view  `json:"jobs"`
			NextCursor *string `json:"next_cursor"`
		}
		code, body := statusOf(f.client, f.webs[0]+"/api/jobs?limit=200&cursor="+cursor)
		if code != http.StatusOK {
			f.t.Fatalf("the list is answered with %d: %s", code, body)
		}
		if err := json.Unmarshal([]byte(strings.TrimSuffix(body, "<nil>")), &page); err != nil {
			f.t.Fatal(err)
		}
		all = append(all, page.Jobs...)
		if page.NextCursor == nil {
			return all
		}
		cursor = *page.NextCursor
	}
}

// 000 section 11: no double XML, and correct leasing, when a worker dies mid-run. Issue 7: kill -9 of worker and web, mid-upload and mid-write: no lost job, no
// half file visible.
func TestNothingAcknowledgedIsLostWhenProcessesAreKilled(t *testing.T) {
	eachStore(t, func(t *testing.T, url string) {
		each := 1
		if strings.HasPrefix(url, "postgres") {
			each = 2
		}
		killed(t, url, each)
	})
}

func killed(t *testing.T, url string, each int) {
	gateway := newSlowGateway(t)
	f := newFleet(t, url, gateway.URL, each)
	c := &crowd{t: t, client: f.client, webs: f.webs, taken: map[string]string{}}
	if code, body := statusOf(f.client, f.webs[0]+"/api/jobs"); code != http.StatusOK { // and now there is a session
		t.Fatal(code, body)
	}
	uploaded := make(chan struct{})
	go func() {
		defer close(uploaded)
		c.all(24)
	}()
	looked := make(chan error, 1)
	looking, enough := context.WithCancel(t.Context())
	defer enough()
	go func() {
		for looking.Err() == nil {
			if _, err := wholeResults(t.Context(), f.results); err != nil {
				looked <- err
				return
			}
			pause(looking, slowness/4)
		}
		looked <- nil
	}()
	for round := range 3 {
		poll(t, "an upload is in progress", func() bool { return c.uploading.Load() > 0 || over(uploaded) })
		f.web[round%each].kill()
		f.startWeb(round % each)
		if round == 2 {
			break // a job whose worker was lost three times counts as the cause of the crashes
		}
		poll(t, "a conversion is in progress", func() bool { return gateway.calls.Load() > 0 })
		f.worker[round%each].kill()
		f.startWorker(round % each)
	}
	poll(t, "all is uploaded", func() bool { return over(uploaded) })
	poll(t, "all is converted", func() bool {
		for _, v := range f.jobs() {
			if v.Status == string(holdfast.Failed) {
				t.Fatalf("%+v", v)
			}
			if v.Status != string(holdfast.Complete) {
				return false
			}
		}
		return true
	})
	enough()
	if err := <-looked; err != nil {
		t.Error(err)
	}
	f.account(c, url)
}

// account checks at the end that no file is missing or duplicated.
func (f *fleet) account(c *crowd, url string) {
	t := f.t
	all := f.jobs()
	for _, v := range all {
		code, body := statusOf(f.client, f.webs[0]+*v.DownloadURL)
		if body = strings.TrimSuffix(body, "<nil>"); code != http.StatusOK || body != bigXML(v.SHA256) {
			t.Errorf("the XML of %s is not its own, or not whole: %d, %d bytes", v.ID, code, len(body))
		}
		if sum, ok := c.taken[v.ID]; ok && sum != v.SHA256 {
			t.Errorf("%s was acknowledged for another PDF", v.ID)
		}
		delete(c.taken, v.ID)
	}
	if len(c.taken) > 0 {
		t.Errorf("acknowledged and lost: %v", c.taken)
	}
	if count, err := wholeResults(t.Context(), f.results); err != nil || count != len(all) {
		t.Errorf("%d results of %d jobs, %v", count, len(all), err)
	}
	for _, p := range append(f.web, f.worker...) {
		p.kill()
	}
	if url == "" {
		url = strings.TrimPrefix(f.env[1], "DATABASE_URL=")
	}
	jobs, err := anystore.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	if report, err := ops.New(jobs, ops.Config{}).CheckIntegrity(t.Context()); err != nil || !report.Healthy {
		t.Errorf("the store is not well: %+v, %v", report, err)
	}
}
