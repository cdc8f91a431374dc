package main

import (
	"bytes"
	"image/png"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/s3test"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

// Pictures in a real S3 server: they are stored, served with and without a key, and deleted; while the server is down, shots are accepted and retried, and lose nothing.
func TestPicturesAreStoredServedAndDeletedInS3(t *testing.T) {
	server := s3test.Start(t)
	bucket := server.Use(t)
	s := newScene(t, "BUCKET", bucket+"/shots", "RETENTION_PICTURE", "90m")
	s.works()
	job := s.ended(s.submit("/ok").ID, service.Completed)
	v, err := s.service.Job(t.Context(), s.owner, job.ID)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(server.Dir, strings.TrimPrefix(bucket, "s3://"))
	if kept := objectsIn(t, folder); len(kept) != 1 || kept[0] != filepath.Join("shots", filepath.FromSlash(v.Stored.Key)) {
		t.Fatalf("the bucket has %q, and the shot is %s", kept, v.Stored.Key)
	}
	isPicture := func(a answer) {
		t.Helper()
		picture, err := png.Decode(bytes.NewReader(a.Body))
		if a.Status != http.StatusOK || err != nil || picture.Bounds().Dx() != 320 || picture.Bounds().Dy() != 200 {
			t.Errorf("%d %.200s: %v", a.Status, a.Body, err)
		}
	}
	isPicture(s.call("GET", "/api/v1/screenshots/"+job.ID.String()+"/result", nil))
	link := job.Result.URL
	isPicture(s.callAs("", "GET", link, nil))
	for _, forged := range []string{strings.Replace(link, "signature=", "signature=0", 1), strings.Replace(link, "expires=", "expires=9", 1), link[:strings.Index(link, "?")]} {
		if a := s.callAs("", "GET", forged, nil); a.Status != http.StatusForbidden {
			t.Errorf("%s: %d", forged, a.Status)
		}
	}
	if a := s.call("GET", "/readyz", nil); !strings.Contains(string(a.Body), `{"name":"pictures","well":true}`) {
		t.Errorf("%s", a.Body)
	}

	other := s.ended(s.submit("/other").ID, service.Completed)
	orphan := strings.Replace(v.Stored.Key, "/1.png", "/99.png", 1)
	if _, err := s.bucket.Put(t.Context(), orphan, strings.NewReader("of a worker that lost its job")); err != nil {
		t.Fatal(err)
	}
	kept := func(age time.Duration) int {
		t.Helper()
		makeOlder(t, folder, age)
		s.duty("sweep")
		return len(objectsIn(t, folder))
	}
	if n := kept(0); n != 3 {
		t.Errorf("%d pictures after a sweep when all are new", n)
	}
	if n := kept(80 * time.Minute); n != 2 {
		t.Errorf("%d pictures after a sweep of what belongs to no shot", n)
	}
	isPicture(s.callAs("", "GET", link, nil))
	if n := kept(100 * time.Minute); n != 0 {
		t.Errorf("%d pictures after their retention time", n)
	}
	for _, a := range []answer{s.callAs("", "GET", link, nil), s.callAs("", "GET", other.Result.URL, nil), s.call("GET", "/api/v1/screenshots/"+job.ID.String()+"/result", nil)} {
		if a.Status != http.StatusNotFound || a.code() != "EXPIRED" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}

	server.Stop()
	failed := s.ended(s.submit("/third").ID, service.Failed)
	if failed.ErrorCode == nil || *failed.ErrorCode != "PICTURE_STORE_ERROR" || failed.RetryCount != 2 {
		t.Errorf("%+v", failed)
	}
	s.has(98, 0, 2)
	s.until("the health check says so", func() bool {
		a := s.call("GET", "/readyz", nil)
		return a.Status == http.StatusOK && strings.Contains(string(a.Body), `{"name":"pictures","well":false}`)
	})
	s.sound()
}

// objectsIn returns the keys of the pictures of a bucket, which are files in its folder.
func objectsIn(t *testing.T, folder string) (keys []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != ".holdfast" { // the mark that the service owns the folder
			key, _ := filepath.Rel(folder, path) // it is below the folder
			keys = append(keys, key)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// makeOlder sets the age of all objects.
func makeOlder(t *testing.T, folder string, age time.Duration) {
	t.Helper()
	for _, key := range objectsIn(t, folder) {
		at := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(folder, key), at, at); err != nil {
			t.Fatal(err)
		}
	}
}
