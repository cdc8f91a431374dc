package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

// converted returns a complete job of the caller with this XML.
func (c *caller) converted(s *scene, xml string) holdfast.ID {
	c.Helper()
	s.gateway.says(http.StatusOK, xml, "Content-Type", "application/xml")
	id := c.has(s, len(xml))
	s.becomes(id, holdfast.Complete)
	return id
}

// Issue 7: range and conditional downloads.
func TestADownloadComesWholeInRangesOrNotAtAll(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		c := newCaller(t, s.served())
		s.works()
		xml := "<document>" + strings.Repeat("<p>0123456789</p>", 50_000) + "</document>"
		path := "/api/jobs/" + c.converted(s, xml).String() + "/download"

		whole := c.asks("GET", path).is(200, "")
		sum := sha256.Sum256([]byte(xml))
		tag := `"` + hex.EncodeToString(sum[:]) + `"`
		if whole.body != xml || whole.header.Get("ETag") != tag || whole.header.Get("Content-Type") != "application/xml" || whole.header.Get("Accept-Ranges") != "bytes" {
			t.Errorf("%d bytes, %v", len(whole.body), whole.header)
		}
		changed := whole.header.Get("Last-Modified")
		const ago = "Mon, 02 Jan 2006 15:04:05 GMT"
		for _, q := range []struct {
			method  string
			headers []string
			status  int
			body    string
		}{
			{"HEAD", nil, 200, ""},
			{"GET", []string{"Range", "bytes=0-9"}, 206, xml[:10]},
			{"GET", []string{"Range", "bytes=100000-100099"}, 206, xml[100000:100100]},
			{"GET", []string{"Range", "bytes=-7"}, 206, xml[len(xml)-7:]},
			{"GET", []string{"Range", "bytes=99999999-"}, 416, "invalid range: failed to overlap\n"},
			{"GET", []string{"Range", "bytes=0-9", "If-Range", tag}, 206, xml[:10]},
			{"GET", []string{"Range", "bytes=0-9", "If-Range", `"another"`}, 200, xml},
			{"GET", []string{"Range", "bytes=0-9", "If-Range", ago}, 200, xml},
			{"GET", []string{"If-None-Match", tag}, 304, ""},
			{"GET", []string{"If-None-Match", `"another", ` + tag}, 304, ""},
			{"GET", []string{"If-None-Match", `"another"`}, 200, xml},
			{"GET", []string{"If-Modified-Since", changed}, 304, ""},
			{"GET", []string{"If-Modified-Since", ago}, 200, xml},
			{"GET", []string{"If-Match", `"another"`}, 412, ""},
			{"GET", []string{"If-Unmodified-Since", ago}, 412, ""},
		} {
			got := c.asks(q.method, path, q.headers...)
			if got.status != q.status || got.body != q.body {
				t.Errorf("%s %v: %d with %d bytes, want %d with %d", q.method, q.headers, got.status, len(got.body), q.status, len(q.body))
			}
		}
		many := c.asks("GET", path, "Range", "bytes=0-4,10-14")
		if many.status != 206 || !strings.HasPrefix(many.header.Get("Content-Type"), "multipart/byteranges") {
			t.Errorf("two ranges: %d %v", many.status, many.header)
		}
	})
}

// 000 section 2C and 11: before complete 409 NOT_READY; after retention, or when it is lost, 404 EXPIRED. C12: source and result expire apart.
func TestADownloadThatIsGoneIsExpiredHoweverItWent(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		c := newCaller(t, s.served())
		s.works()
		expired, lost, kept := c.converted(s, "<a/>"), c.converted(s, "<bb/>"), c.converted(s, "<ccc/>")
		s.loses(expired, artifactResult)
		if err := s.results.Delete(t.Context(), resultKey(lost)); err != nil {
			t.Fatal(err)
		}
		s.loses(kept, artifactSource)
		for id, want := range map[holdfast.ID][2]string{expired: {"available", "expired"}, lost: {"available", "missing"}, kept: {"expired", "available"}} {
			v := c.get(id)
			if v.Source != want[0] || v.Result != want[1] || v.Status != "complete" || (v.DownloadURL == nil) != (want[1] != "available") {
				t.Errorf("%v: %+v", want, v)
			}
		}
		for _, id := range []holdfast.ID{expired, lost} {
			for _, path := range []string{"/download", "/download?inline=1", "/preview"} {
				got := c.asks("GET", "/api/jobs/"+id.String()+path).is(404, "EXPIRED")
				if !strings.Contains(got.body, "File was removed by retention. Re-upload to regenerate.") || got.header.Get("ETag") != "" {
					t.Errorf("%v %s", got.header, got.body)
				}
			}
		}
		c.asks("GET", "/api/jobs/"+kept.String()+"/download").is(200, "")
		if !strings.Contains(s.logged.String(), "result_lost") {
			t.Error("the log does not say that a result is missing")
		}
	})
}

func TestStorageThatFailsIsNotTakenForExpiry(t *testing.T) {
	s := newScene(t, "", quick)
	at := s.served()
	c := newCaller(t, at)
	s.works()
	id := c.converted(s, "<a/>")
	s.app.results = brokenStore{s.app.results}
	got := c.asks("GET", "/api/jobs/"+id.String()+"/download").is(503, "IO_ERROR")
	if got.header.Get("Retry-After") == "" || strings.Contains(got.body, "secret") || strings.Contains(got.body, "We’ll") {
		t.Errorf("%v %s", got.header, got.body)
	}
	if v := c.get(id); v.Status != "complete" || v.Result != "available" {
		t.Errorf("the job cannot be read while the storage fails: %+v", v)
	}
	s.gateway.says(http.StatusBadRequest, "")
	failed := c.has(s, 77)
	s.becomes(failed, holdfast.Failed)
	s.app.uploads = brokenStore{s.app.uploads}
	c.asks("POST", "/api/jobs/"+failed.String()+"/retry").is(503, "IO_ERROR")
}

func TestAnXMLIsShownAsTextAndNeverActsAsAPage(t *testing.T) {
	s := newScene(t, "", quick)
	c := newCaller(t, s.served())
	s.works()
	long := "<html xmlns=\"http://www.w3.org/1999/xhtml\">" + strings.Repeat("é", 40_000) + "</html>"
	id := c.converted(s, long).String()
	inline := c.asks("GET", "/api/jobs/"+id+"/download?inline=1").is(200, "")
	if inline.body != long || inline.header.Get("Content-Type") != "text/plain; charset=utf-8" || inline.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(inline.header.Get("Content-Disposition"), "inline; ") {
		t.Errorf("%v", inline.header)
	}
	preview := c.asks("GET", "/api/jobs/"+id+"/preview").is(200, "")
	if !strings.HasPrefix(long, preview.body) || !utf8.ValidString(preview.body) || len(preview.body) < previewBytes-4 || len(preview.body) > previewBytes ||
		preview.header.Get("X-Truncated") != "true" || preview.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%d bytes, %v", len(preview.body), preview.header)
	}
	short := c.asks("GET", "/api/jobs/"+c.converted(s, "<a/>").String()+"/preview").is(200, "")
	if short.body != "<a/>" || short.header.Get("X-Truncated") != "" {
		t.Errorf("%q, %v", short.body, short.header)
	}
}

func TestADownloadIsNamedAsThePDFWasWhateverIsInTheName(t *testing.T) {
	for pdf, want := range map[string]string{
		"report.pdf":            "report.xml",
		"Report.PDF":            "Report.xml",
		".pdf":                  ".pdf.xml",
		"archive.tar":           "archive.tar.xml",
		"räksmörgås 你好.pdf":     "räksmörgås 你好.xml",
		`a"; filename="b.exe`:   `a"; filename="b.exe.xml`,
		"semi;colon%41\\.pdf":   "semi;colon%41\\.xml",
		"line\r\nSet-Cookie: x": "line\r\nSet-Cookie: x.xml",
	} {
		header := disposition("attachment", xmlName(pdf))
		if strings.ContainsAny(header, "\r\n") {
			t.Errorf("%q breaks the header: %q", pdf, header)
		}
		how, params, err := mime.ParseMediaType(header)
		if err != nil || how != "attachment" || params["filename"] != want {
			t.Errorf("%q is read as %q (%v): %s", pdf, params["filename"], err, header)
		}
		plain, _, _ := strings.Cut(strings.SplitN(header, `"`, 3)[1], `"`)
		if strings.ContainsAny(plain, `"\;%`) {
			t.Errorf("the plain name of %q is not plain: %q", pdf, plain)
		}
	}
}

func TestAPreviewEndsBetweenCharacters(t *testing.T) {
	text := "aé你😀b"
	for n := range len(text) + 1 {
		if got := string(trimPartialRune([]byte(text[:n]))); !utf8.ValidString(got) || !strings.HasPrefix(text, got) || n-len(got) > 3 {
			t.Errorf("%q becomes %q", text[:n], got)
		}
	}
}

func TestASlowReaderGetsAllOfIt(t *testing.T) {
	s := newScene(t, "", quick)
	c := newCaller(t, s.served())
	s.works()
	xml := "<document>" + strings.Repeat("<p>0123456789</p>", 200_000) + "</document>"
	id := c.converted(s, xml)
	response, err := c.client.Get(c.at + "/api/jobs/" + id.String() + "/download")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	first := make([]byte, 1000)
	if _, err := io.ReadFull(response.Body, first); err != nil {
		t.Fatal(err)
	}
	pause(t.Context(), slowness)
	rest, err := io.ReadAll(response.Body)
	if err != nil || string(first)+string(rest) != xml {
		t.Errorf("%d bytes of %d, %v", len(first)+len(rest), len(xml), err)
	}
}
