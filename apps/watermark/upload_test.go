package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// uploads asks for something of an upload in parts, and returns the answer, whose body is read.
func (v *visitor) uploads(method, path, token string, body io.Reader, header ...string) *http.Response {
	v.Helper()
	r, err := http.NewRequest(method, v.base+path, body)
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("X-Form-Token", token)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := v.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	return a
}

// begins begins the upload of a file and returns its path.
func (v *visitor) begins(token, name string, size int) string {
	v.Helper()
	a := v.uploads("POST", "/uploads", token, nil, "Upload-Length", strconv.Itoa(size), "Upload-Metadata", "filename "+base64.StdEncoding.EncodeToString([]byte(name)))
	if a.StatusCode != http.StatusCreated {
		v.Fatalf("the upload is answered with %d", a.StatusCode)
	}
	return a.Header.Get("Location")
}

const partType = "application/offset+octet-stream"

// cut is a body whose connection breaks.
type cut struct{ io.Reader }

func (c cut) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestAnUploadContinuesAfterTheConnectionBroke(t *testing.T) {
	content, err := os.ReadFile(video(t))
	if err != nil {
		t.Fatal(err)
	}
	tell(t, func(s *stage) {
		s.get("/videos")
		token := s.token()
		path := s.begins(token, "Zoë.mp4", len(content))
		half := len(content) / 2
		a := s.uploads("PATCH", path, token, cut{bytes.NewReader(content[:half])}, "Upload-Offset", "0", "Content-Type", partType)
		if a.StatusCode < 400 {
			t.Errorf("a part that was cut off is answered with %d", a.StatusCode)
		}
		if a = s.uploads("HEAD", path, "", nil); a.Header.Get("Upload-Offset") != strconv.Itoa(half) || a.Header.Get("Upload-Length") != strconv.Itoa(len(content)) {
			t.Fatalf("after the cut: %v", a.Header)
		}
		for name, header := range map[string][]string{"another place": {"Upload-Offset", "7", "Content-Type", partType}, "no place": {"Content-Type", partType}, "another type": {"Upload-Offset", strconv.Itoa(half)}} {
			if a := s.uploads("PATCH", path, token, strings.NewReader("x"), header...); a.StatusCode != http.StatusConflict && a.StatusCode != http.StatusBadRequest {
				t.Errorf("%s is answered with %d", name, a.StatusCode)
			}
		}
		s.post("/videos", http.StatusBadRequest, url.Values{"upload": {filepath.Base(path)}})
		s.find(fmt.Sprintf(`(%d of %d bytes have arrived)`, half, len(content)))
		a = s.uploads("PATCH", path, token, bytes.NewReader(content[half:]), "Upload-Offset", strconv.Itoa(half), "Content-Type", partType)
		if a.StatusCode != http.StatusNoContent || a.Header.Get("Upload-Offset") != strconv.Itoa(len(content)) {
			t.Fatalf("%d, %v", a.StatusCode, a.Header)
		}
		s.post("/videos", http.StatusOK, url.Values{"upload": {filepath.Base(path)}})
		s.find(`(Zoë\.mp4)`)
		s.post("/videos", http.StatusNotFound, url.Values{"upload": {filepath.Base(path)}}) // once
	})
}

func TestUploadsBelongToTheirAccountHaveLimitsAndAreDeletedAfterADay(t *testing.T) {
	tell(t, func(s *stage) {
		s.get("/videos")
		token := s.token()
		path := s.begins(token, "a.mp4", 10)
		if a := s.uploads("POST", "/uploads", "wrong", nil, "Upload-Length", "10"); a.StatusCode != http.StatusForbidden {
			t.Errorf("without the token of the session: %d", a.StatusCode)
		}
		name := "filename " + base64.StdEncoding.EncodeToString([]byte("a.mp4"))
		for size, want := range map[string]int{"0": http.StatusBadRequest, "-1": http.StatusBadRequest, "": http.StatusBadRequest, "99999999999": http.StatusRequestEntityTooLarge} {
			if a := s.uploads("POST", "/uploads", token, nil, "Upload-Length", size, "Upload-Metadata", name); a.StatusCode != want {
				t.Errorf("a file of %q bytes is answered with %d, want %d", size, a.StatusCode, want)
			}
		}
		for n := range 30 {
			a := s.uploads("POST", "/uploads", token, nil, "Upload-Length", "10", "Upload-Metadata", name)
			if full := n >= 19; full != (a.StatusCode == http.StatusBadRequest) {
				t.Errorf("upload %d is answered with %d", n, a.StatusCode)
			}
		}
		s.pass(2 * time.Hour)
		if err := s.app.campaigns.SweepUploads(context.Background()); err != nil {
			t.Fatal(err)
		}
		if a := s.uploads("HEAD", path, "", nil); a.StatusCode != http.StatusOK {
			t.Errorf("after two hours: %d", a.StatusCode)
		}
		for _, entry := range s.uploaded() { // files have the time of the real clock
			now := time.Now()
			if err := os.Chtimes(entry, now, now); err != nil {
				t.Fatal(err)
			}
		}
		s.pass(25 * time.Hour)
		s.works() // an engine begins with its duties
		s.pass(time.Minute)
		if left := s.uploaded(); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
		if a := s.uploads("HEAD", path, "", nil); a.StatusCode != http.StatusNotFound {
			t.Errorf("after a day: %d", a.StatusCode)
		}
		s.get("/videos")
		s.begins(s.token(), "b.mp4", 10)
		s.post("/sign-out", http.StatusOK, url.Values{})
		s.post("/sign-up", http.StatusOK, url.Values{"email": {"eve@example.org"}, "password": {"a long password"}})
		s.get("/videos")
		for _, path := range s.uploaded() {
			if a := s.uploads("HEAD", "/uploads/"+strings.TrimSuffix(filepath.Base(path), ".part"), "", nil); a.StatusCode != http.StatusNotFound {
				t.Errorf("another account: %d", a.StatusCode)
			}
		}
	})
}

// uploaded returns the files in the folder of uploads.
func (s *stage) uploaded() []string {
	list, err := filepath.Glob(filepath.Join(s.folder, "data", "uploads", "*"))
	if err != nil {
		s.Error(err)
	}
	return list
}

func TestRecipientsAreAddedByFormListAndFileAndRemovedFromADraft(t *testing.T) {
	tell(t, func(s *stage) {
		asset := s.find(`/campaigns/new\?video=([0-9a-zA-Z-]+)`)
		s.post("/campaigns", http.StatusOK, url.Values{"name": {"Spring"}, "video": {asset}, "invisible": {"on"}})
		page := "/campaigns/" + s.find(`action="/campaigns/([0-9a-zA-Z-]+)/publish"`)
		s.post(page+"/recipients", http.StatusOK, url.Values{"name": {"Hopper, Grace"}, "email": {"grace@example.org"}})
		s.find(`(Hopper, Grace)`)
		s.post(page+"/recipients", http.StatusBadRequest, url.Values{"name": {"Olga"}, "email": {"no address"}})
		file := filepath.Join(s.folder, "list.csv")
		if err := os.WriteFile(file, []byte("\ufeffName,E-mail\r\n\"Lovelace, Ada\",ada@example.org\r\nОльга Иванова,\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.sendAs("list", page+"/recipients", file, http.StatusOK, map[string]string{"recipients": "Zoë"})
		for _, name := range []string{"Lovelace, Ada", "Ольга Иванова", "Zoë"} {
			s.find(`(` + name + `)`)
		}
		if strings.Contains(s.page, ">Name<br>") {
			t.Error("the line with the names of the columns is a recipient")
		}
		s.post(s.find(`action="(/campaigns/[^"]+/remove)">[^\n]*Zoë`), http.StatusOK, url.Values{})
		if strings.Contains(s.page, "Zoë") {
			t.Error("a recipient that was removed is there")
		}
		remove := s.find(`action="(/campaigns/[^"]+/remove)">`)
		s.post(page+"/recipients", http.StatusOK, url.Values{"name": {"Last"}})
		s.post(page+"/publish", http.StatusOK, url.Values{})
		s.get("/videos")
		s.post(remove, http.StatusConflict, url.Values{})
		if got := len(s.jobs()); got != 4 {
			t.Errorf("%d jobs, want 4", got)
		}
	})
}

func TestASampleClipIsMadeByFFmpeg(t *testing.T) {
	v := launch(t)
	v.post("/sign-up", http.StatusOK, url.Values{"email": {"ada@example.org"}, "password": {"a long password"}})
	v.get("/videos")
	v.post("/videos/sample", http.StatusOK, url.Values{})
	v.find(`(Sample clip)`)
	v.find(`(960×540)`)
}
