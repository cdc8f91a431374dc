package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// A door is a scene whose API is served over HTTP.
type door struct {
	*scene
	server *httptest.Server
}

func openDoor(t *testing.T, address string, change ...func(*settings)) *door {
	t.Helper()
	d := &door{scene: newScene(t, address, change...)}
	site, err := d.handler()
	if err != nil {
		t.Fatal(err)
	}
	d.server = httptest.NewServer(site)
	t.Cleanup(d.server.Close)
	return d
}

// testSessionKey is the session key of every scene, so that tests can create sessions.
var testSessionKey = sessionKey(bytes.Repeat([]byte{7}, sessionKeyBytes))

// newSession returns the cookie of a new session, and its owner.
func newSession() (session, owner string) {
	session = testSessionKey.newSession()
	return session, ownerOf(session)
}

// pdfOf returns a PDF of exactly size bytes.
func pdfOf(size int) string {
	const head, tail = "%PDF-1.7\n1 0 obj\n<<>>\nendobj\n%", "\nstartxref\n9\n%%EOF\n"
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// refusalAnswer is the API's answer to a refused upload.
type refusalAnswer struct {
	Code string `json:"error_code"`
	Line string `json:"error_message"`
	ID   string `json:"id"`
}

func decode[T any](t testing.TB, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// posts uploads a file as a session, as it should be done.
func (d *door) posts(t testing.TB, session string, file io.Reader, mapping string) (*http.Response, string) {
	t.Helper()
	body, to := io.Pipe()
	form := multipart.NewWriter(to)
	go func() {
		part, err := form.CreateFormFile("file", "report.pdf")
		if err == nil {
			_, err = io.Copy(part, file)
		}
		_ = to.CloseWithError(errors.Join(err, form.WriteField("mapping", mapping), form.Close()))
	}()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, d.server.URL+"/api/upload", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: session})
	response, err := d.server.Client().Do(r)
	if err != nil {
		t.Error(err)
		return &http.Response{}, "{}"
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response, string(text)
}

// files lists the uploads, including unfinished files.
func (d *door) files(t testing.TB) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(filesIn(t, d.set.Uploads)))
}

func (d *door) jobsOf(t testing.TB, owner string) []holdfast.Job {
	t.Helper()
	jobs, _, err := d.store.Jobs(context.Background(), store.Filter{Owner: owner, Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// quiet waits until no upload is in progress.
func (d *door) quiet(t testing.TB) {
	t.Helper()
	d.until("no upload under way", func() bool { return d.uploading.Count("all") == 0 })
}

func TestAnUploadBecomesAJobWithItsFile(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		d := openDoor(t, address)
		session, owner := newSession()
		response, text := d.posts(t, session, strings.NewReader(smallPDF), "layout")
		v := decode[view](t, text)
		expect(t, "status", response.StatusCode, http.StatusCreated)
		expect(t, "location", response.Header.Get("Location"), "/api/jobs/"+v.ID)
		expect(t, "state", v.Status, string(holdfast.Queued))
		expect(t, "name, mapping", v.Filename+" "+v.Mapping, "report.pdf layout")
		expect(t, "source", v.Source, fileAvailable)
		if v.Bytes != int64(len(smallPDF)) || len(v.SHA256) != 64 || v.Duplicate || v.SourceExpiresAt == nil {
			t.Errorf("%s", text)
		}
		jobs := d.jobsOf(t, owner)
		if len(jobs) != 1 || jobs[0].Queue != queueConvert {
			t.Fatalf("%+v", jobs)
		}
		if all := filesIn(t, d.set.Uploads); len(all) != 1 || all[sourceKey(jobs[0].ID)] != smallPDF {
			t.Errorf("%q", all)
		}
	})
}

// C2, 000 section 8: one job per owner, hash, mapping and size, however many come at once.
func TestFiftyUploadsOfOneFileAtOnceAreOneJob(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		d := openDoor(t, address)
		first, firstOwner := newSession()
		second, secondOwner := newSession()
		var all sync.WaitGroup
		var made, found sync.Map
		for n := range 50 {
			all.Go(func() {
				session := []string{first, second}[n%2]
				response, text := d.posts(t, session, strings.NewReader(smallPDF), "text")
				v := decode[view](t, text)
				switch {
				case response.StatusCode == http.StatusCreated && !v.Duplicate:
					made.Store(session+v.ID, session)
				case response.StatusCode == http.StatusOK && v.Duplicate:
					found.Store(session+v.ID, session)
				default:
					t.Errorf("%d %s", response.StatusCode, text)
				}
			})
		}
		all.Wait()
		count := func(m *sync.Map) (n int) {
			m.Range(func(any, any) bool { n++; return true })
			return n
		}
		if count(&made) != 2 || count(&found) != 2 || len(d.jobsOf(t, firstOwner)) != 1 || len(d.jobsOf(t, secondOwner)) != 1 {
			t.Errorf("%d jobs were made, %d were found", count(&made), count(&found))
		}
		expect(t, "files", len(d.files(t)), 2)
		if _, text := d.posts(t, first, strings.NewReader(smallPDF), "fields"); decode[view](t, text).Duplicate {
			t.Error("another mapping is another job")
		}
		if _, text := d.posts(t, first, strings.NewReader(smallPDF+"\n"), "text"); decode[view](t, text).Duplicate {
			t.Error("another file is another job")
		}
	})
}

// 000 sections 2A, 6 and 8: a live or complete duplicate is returned; once its result is gone, an upload creates a new job; a failed job does not block an upload.
func TestADuplicateIsReturnedWhileItsResultExists(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		d := openDoor(t, address)
		session, _ := newSession()
		upload := func(duplicate bool) holdfast.ID {
			t.Helper()
			response, text := d.posts(t, session, strings.NewReader(smallPDF), "text")
			v := decode[view](t, text)
			if v.Duplicate != duplicate || (response.StatusCode == http.StatusOK) != duplicate {
				t.Fatalf("%d %s", response.StatusCode, text)
			}
			id, err := holdfast.ParseID(v.ID)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		first := upload(false)
		expect(t, "while it is queued", upload(true), first)
		d.works()
		d.becomes(first, holdfast.Complete)
		expect(t, "when it is complete", upload(true), first)

		if err := d.results.Delete(t.Context(), resultKey(first)); err != nil { // lost
			t.Fatal(err)
		}
		second := upload(false)
		d.becomes(second, holdfast.Complete)
		expect(t, "created again", upload(true), second)

		gone := store.Artifact{Job: second, Name: artifactResult, Ref: resultKey(second), Expired: true}
		if err := errors.Join(d.results.Delete(t.Context(), resultKey(second)), d.store.Apply(t.Context(), store.Change{Artifacts: []store.Artifact{gone}})); err != nil {
			t.Fatal(err)
		}
		d.gateway.says(http.StatusNotAcceptable, `{"code":"INVALID_MAPPING","message":"Unsupported mapping."}`, "Content-Type", "application/json")
		third := upload(false)
		d.becomes(third, holdfast.Failed)
		d.gateway.converts()
		fourth := upload(false)
		d.becomes(fourth, holdfast.Complete)
		expect(t, "after a failure", upload(true), fourth)
		expect(t, "files", len(d.files(t)), 4)
	})
}

func TestADuplicateWhoseSourceIsGoneDoesNotBlockAnUpload(t *testing.T) {
	d := openDoor(t, "")
	session, owner := newSession()
	_, text := d.posts(t, session, strings.NewReader(smallPDF), "text")
	first := decode[view](t, text)
	if err := d.uploads.Delete(t.Context(), first.ID+".pdf"); err != nil {
		t.Fatal(err)
	}
	response, _ := d.posts(t, session, strings.NewReader(smallPDF), "text")
	expect(t, "status", response.StatusCode, http.StatusCreated)
	expect(t, "jobs", len(d.jobsOf(t, owner)), 2)
}

// broken is a storage that fails after a number of bytes, or at the end of the file.
type broken struct {
	blob.Store
	at int64
}

func (b broken) Put(_ context.Context, key string, from io.Reader) (blob.Info, error) {
	if _, err := io.CopyN(io.Discard, from, b.at); err != nil && err != io.EOF {
		return blob.Info{}, err
	}
	return blob.Info{}, fmt.Errorf("write %s: no space left on device", filepath.Join("/srv/secret/uploads", key))
}

// C1, 000 section 2A: a disk that fails is IO_ERROR and 500, and the job is failed.
func TestAStorageErrorIsAnsweredAndRecorded(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		d := openDoor(t, address)
		whole := d.uploads
		for _, at := range []int64{0, 1, 100_000, 1 << 19, 1 << 30} {
			d.uploads = broken{whole, at}
			session, owner := newSession()
			response, text := d.posts(t, session, strings.NewReader(pdfOf(1<<20)), "layout")
			got := decode[refusalAnswer](t, text)
			if response.StatusCode != http.StatusInternalServerError || got.Code != codeIO || got.Line != "Temporary storage issue. We’ll retry." || strings.Contains(text, "secret") {
				t.Errorf("at %d: %d %s", at, response.StatusCode, text)
			}
			jobs := d.jobsOf(t, owner)
			if len(jobs) != 1 || jobs[0].ID.String() != got.ID || strings.Contains(string(jobs[0].Args), "/srv") {
				t.Fatalf("at %d: %+v", at, jobs)
			}
			v, err := d.view(t.Context(), jobs[0])
			if err != nil || v.Status != string(holdfast.Failed) || *v.ErrorCode != codeIO || v.Mapping != "layout" || v.Filename != "report.pdf" {
				t.Errorf("at %d: %+v %v", at, v, err)
			}
		}
		d.uploads = broken{whole, 100}
		session, _ := newSession()
		if response, text := d.posts(t, session, strings.NewReader("no PDF at all"), "text"); response.StatusCode != http.StatusBadRequest {
			t.Errorf("a file that is no PDF: %s", text) // what is wrong with the file is seen first
		}
		expect(t, "files", len(d.files(t)), 0)
	})
}

func TestAStoreThatFailsLeavesNoFileAndNoHalfAnswer(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		d := openDoor(t, address)
		for name, c := range map[string]struct {
			faults       []storetest.Fault
			status, jobs int
			files        int
		}{
			"once":                         {[]storetest.Fault{{Verb: "Enqueue"}}, 500, 1, 0}, // the refusal could be written
			"and cannot write the refusal": {[]storetest.Fault{{Verb: "Enqueue", Always: true}}, 500, 0, 0},
			"after it has done the work":   {[]storetest.Fault{{Verb: "Enqueue", After: true}}, 201, 1, 1},
			"when the expiry is kept":      {[]storetest.Fault{{Verb: "Apply"}}, 201, 1, 1},
		} {
			before := len(d.files(t))
			d.faulty.Plan(c.faults...)
			session, owner := newSession()
			response, text := d.posts(t, session, strings.NewReader(smallPDF), "text")
			if response.StatusCode != c.status || c.status == 500 && decode[refusalAnswer](t, text).Code != codeIO || d.faulty.Fired() == 0 {
				t.Errorf("%s: %d %s", name, response.StatusCode, text)
			}
			d.faulty.Plan()
			if jobs := d.jobsOf(t, owner); len(jobs) != c.jobs || len(d.files(t))-before != c.files {
				t.Errorf("%s: %d jobs, %d files more", name, len(jobs), len(d.files(t))-before)
			}
		}
	})
}

// A blind store writes what it is asked to, and then fails, as it does every read.
type blind struct{ store.Store }

func (b blind) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	_, err := b.Store.Enqueue(ctx, drafts)
	return nil, errors.Join(err, errors.New("the connection was lost"))
}

func (b blind) Job(context.Context, holdfast.ID) (holdfast.Job, error) {
	return holdfast.Job{}, errors.New("the connection was lost")
}

func TestAFileThatMayBelongToAJobIsNotDeleted(t *testing.T) {
	d := openDoor(t, "")
	d.app.jobs = blind{d.store}
	session, owner := newSession()
	response, text := d.posts(t, session, strings.NewReader(smallPDF), "text")
	if response.StatusCode != http.StatusInternalServerError || decode[refusalAnswer](t, text).Code != codeIO {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	for _, job := range d.jobsOf(t, owner) {
		if job.Kind == (Conversion{}).Kind() && !slices.Contains(d.files(t), sourceKey(job.ID)) {
			t.Errorf("the job %s lost its file", job.ID)
		}
	}
	expect(t, "files", len(d.files(t)), 1)
}
