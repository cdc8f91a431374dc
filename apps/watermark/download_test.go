package main

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
)

// part asks for a part of a file and returns the status and the content.
func (v *visitor) part(method, path string, header ...string) (int, string, http.Header) {
	r, err := http.NewRequest(method, v.base+path, nil)
	if err != nil {
		v.Error(err)
		return 0, "", nil
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := v.Do(r)
	if err != nil {
		v.Error(err)
		return 0, "", nil
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		v.Error(err)
	}
	return a.StatusCode, string(text), a.Header
}

// ready publishes a campaign for one recipient and returns the path of its file.
func (s *stage) ready(downloads string) string {
	s.Helper()
	s.publishes(downloads, "Grace Hopper")
	s.works()
	s.becomes(campaign.Ready)
	return s.find(`href="http://[^/]+(/d/[A-Z0-9]+)"`) + "/file"
}

func TestADownloadIsContinuedWhereItStoppedAndCountsOnce(t *testing.T) {
	tell(t, func(s *stage) {
		file := s.ready("1")
		if status, _, header := s.part("HEAD", file); status != 200 || header.Get("Content-Length") == "0" {
			t.Errorf("HEAD: %d", status)
		}
		_, whole, header := s.part("GET", file, "Range", "bytes=0-999")
		if len(whole) != 1000 {
			t.Fatalf("the first part has %d bytes", len(whole))
		}
		status, rest, _ := s.part("GET", file, "Range", "bytes=1000-", "If-Range", header.Get("Last-Modified"))
		if whole += rest; status != http.StatusPartialContent || !strings.HasSuffix(header.Get("Content-Range"), "/"+strconv.Itoa(len(whole))) {
			t.Errorf("%d: %d bytes of %s", status, len(whole), header.Get("Content-Range"))
		}
		if status, tail, _ := s.part("GET", file, "Range", "bytes=-100"); status != http.StatusPartialContent || tail != whole[len(whole)-100:] {
			t.Errorf("the end: %d with %d bytes", status, len(tail))
		}
		if status, _, _ := s.part("GET", file, "Range", "bytes=99999999-"); status != http.StatusRequestedRangeNotSatisfiable {
			t.Errorf("behind the end: %d", status)
		}
		s.get(s.campaign)
		s.find(`data-state="(consumed)"`)
		for name, header := range map[string][]string{
			"the whole file": nil, "a list of parts": {"Range", "bytes=5-6,8-9"}, "a part of another version": {"Range", "bytes=5-9", "If-Range", "Mon, 02 Jan 2006 15:04:05 GMT"},
			"an unknown unit": {"Range", "pages=1-2"},
		} {
			if status, _, _ := s.part("GET", file, header...); status != http.StatusGone {
				t.Errorf("%s is answered with %d", name, status)
			}
		}
	})
}

// Parts do not count as downloads, so they must not give more than was counted: also not when none was counted, and when many are asked for at the same time.
func TestPartsGiveNoMoreThanTheCountedDownloads(t *testing.T) {
	tell(t, func(s *stage) {
		file := s.ready("1")
		_, _, header := s.part("HEAD", file)
		size, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		var open []io.ReadCloser
		for range 10 { // none is read before all have begun
			r, _ := http.NewRequest("GET", s.base+file, nil)
			r.Header.Set("Range", "bytes=1-")
			a, err := s.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if a.StatusCode != http.StatusPartialContent {
				_, _ = io.Copy(io.Discard, a.Body)
				continue
			}
			open = append(open, a.Body)
		}
		sent := int64(0)
		for _, body := range open {
			n, err := io.Copy(io.Discard, body)
			if sent += n; err != nil {
				t.Error(err)
			}
		}
		if sent > size*5/4 || sent == 0 {
			t.Errorf("%d bytes were sent of a copy of %d", sent, size)
		}
	})
}
