package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
)

// previewBytes is how much of an XML file a preview shows.
const previewBytes = 64 << 10

// download answers GET /api/jobs/{id}/download. It supports ranges and conditional requests.
func (f *webHandler) download(w http.ResponseWriter, r *http.Request, owner string) error {
	xml, err := f.openResult(r, owner)
	if err != nil {
		return err
	}
	defer xml.Close()
	header := w.Header()
	header.Set("Content-Type", "application/xml")
	header.Set("Content-Disposition", disposition("attachment", xml.name))
	if r.URL.Query().Get("inline") == "1" { // as text: XML from an untrusted PDF must not run as a page of this site
		header.Set("Content-Type", "text/plain; charset=utf-8")
		header.Set("Content-Disposition", disposition("inline", xml.name))
	}
	header.Set("ETag", strconv.Quote(xml.sum))
	header.Set("Cache-Control", "private, no-cache") // revalidated on every use: the file may have expired, or the browser may have another session
	http.ServeContent(w, r, "", xml.made, xml)
	return nil
}

// preview answers GET /api/jobs/{id}/preview with the first 64 KiB of the XML, as plain text.
func (f *webHandler) preview(w http.ResponseWriter, r *http.Request, owner string) error {
	xml, err := f.openResult(r, owner)
	if err != nil {
		return err
	}
	defer xml.Close()
	text, err := io.ReadAll(io.LimitReader(xml, previewBytes))
	if err != nil {
		return err
	}
	if int64(len(text)) < xml.Size {
		text = trimPartialRune(text)
		w.Header().Set("X-Truncated", "true")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
	return nil
}

// trimPartialRune removes an incomplete UTF-8 character from the end of a text.
func trimPartialRune(text []byte) []byte {
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if last := text[len(text)-cut:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-cut]
			}
			break
		}
	}
	return text
}

// An openedResult is the XML file of a job that belongs to the caller.
type openedResult struct {
	*blob.File
	name string // suggested file name
	sum  string
	made time.Time
}

// openResult opens the XML of a job, or returns the reason why there is none (000 section 2C).
func (f *webHandler) openResult(r *http.Request, owner string) (*openedResult, error) {
	job, err := f.ownJob(r.Context(), owner, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if job.State != holdfast.Complete || job.Kind != (Conversion{}).Kind() {
		return nil, apiError{code: codeNotReady, after: pollDelay(job)}
	}
	var args Conversion
	var result Result
	if err := errors.Join(json.Unmarshal(job.Args, &args), json.Unmarshal(job.Result, &result)); err != nil {
		return nil, fmt.Errorf("job %s cannot be read: %w", job.ID, err)
	}
	if kept, err := f.filesOf(r.Context(), job, false); err != nil {
		return nil, err
	} else if kept.Result.State == fileExpired {
		return nil, removed
	}
	file, err := f.results.Open(r.Context(), result.Key)
	if errors.Is(err, blob.ErrNotFound) {
		f.log.Error("result missing before its expiry: check which other program deletes files in RESULTS_DIR", "event", "result_lost", "job_id", job.ID.String())
		return nil, removed
	}
	if err != nil {
		return nil, storageUnavailable(err)
	}
	return &openedResult{File: file, name: xmlName(args.Name), sum: result.SHA256, made: job.FinishedAt}, nil
}

// pollDelay returns after how long the caller should ask again; 0 means that the job will not become ready.
func pollDelay(job holdfast.Job) time.Duration {
	if job.State.Terminal() || job.Kind != (Conversion{}).Kind() {
		return 0
	}
	wait := 2 * time.Second
	if job.State == holdfast.Queued {
		wait = max(wait, job.DueAt.Sub(job.AsOf))
	}
	return wait
}

// xmlName returns the file name of a result: that of the PDF with the extension .xml.
func xmlName(pdf string) string {
	if ending := path.Ext(pdf); strings.EqualFold(ending, ".pdf") && len(pdf) > len(ending) {
		pdf = strings.TrimSuffix(pdf, ending)
	}
	return pdf + ".xml"
}

// disposition builds a Content-Disposition header (RFC 6266): an ASCII file name for every client, and the exact one for clients that support filename*.
func disposition(how, name string) string {
	plain, exact := strings.Builder{}, strings.Builder{}
	for _, r := range name {
		if r < utf8.RuneSelf && (safe(byte(r)) || r == ' ') {
			plain.WriteRune(r)
		} else {
			plain.WriteByte('_')
		}
	}
	for _, c := range []byte(name) {
		if safe(c) {
			exact.WriteByte(c)
		} else {
			fmt.Fprintf(&exact, "%%%02X", c)
		}
	}
	return fmt.Sprintf(`%s; filename="%s"; filename*=UTF-8''%s`, how, plain.String(), exact.String())
}

// safe reports whether a character needs no quoting in either form.
func safe(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
}
