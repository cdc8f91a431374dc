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

// previewed is how much of an XML a preview shows.
const previewed = 64 << 10

// download answers GET /api/jobs/{id}/download: whole, in ranges, or not at all when the caller has it already.
func (f *front) download(w http.ResponseWriter, r *http.Request, owner string) error {
	xml, err := f.openResult(r, owner)
	if err != nil {
		return err
	}
	defer xml.Close()
	header := w.Header()
	header.Set("Content-Type", "application/xml")
	header.Set("Content-Disposition", disposition("attachment", xml.name))
	if r.URL.Query().Get("inline") == "1" { // as text: what somebody's PDF says must not act as a page of ours
		header.Set("Content-Type", "text/plain; charset=utf-8")
		header.Set("Content-Disposition", disposition("inline", xml.name))
	}
	header.Set("ETag", strconv.Quote(xml.sum))
	header.Set("Cache-Control", "private, no-cache") // may be kept, and is asked for each time: it may have expired, or be somebody else's by then
	http.ServeContent(w, r, "", xml.made, xml)
	return nil
}

// preview answers GET /api/jobs/{id}/preview: the beginning of the XML, as text.
func (f *front) preview(w http.ResponseWriter, r *http.Request, owner string) error {
	xml, err := f.openResult(r, owner)
	if err != nil {
		return err
	}
	defer xml.Close()
	text, err := io.ReadAll(io.LimitReader(xml, previewed))
	if err != nil {
		return err
	}
	if int64(len(text)) < xml.Size {
		text = wholeRunes(text)
		w.Header().Set("X-Truncated", "true")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
	return nil
}

// wholeRunes leaves out a character that the end of a text cuts in two.
func wholeRunes(text []byte) []byte {
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

// An opened result is an XML that may be told to whoever asked.
type opened struct {
	*blob.File
	name string // for whoever saves it
	sum  string
	made time.Time
}

// openResult opens the XML of a job, or says why there is none (000 section 2C).
func (f *front) openResult(r *http.Request, owner string) (*opened, error) {
	job, err := f.own(r.Context(), owner, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if job.State != holdfast.Complete || job.Kind != (Conversion{}).Kind() {
		return nil, fault{code: codeNotReady, after: patience(job)}
	}
	var args Conversion
	var result Result
	if err := errors.Join(json.Unmarshal(job.Args, &args), json.Unmarshal(job.Result, &result)); err != nil {
		return nil, fmt.Errorf("job %s cannot be read: %w", job.ID, err)
	}
	if kept, err := f.keptFiles(r.Context(), job, false); err != nil {
		return nil, err
	} else if kept.Result.State == fileExpired {
		return nil, removed
	}
	file, err := f.results.Open(r.Context(), result.Key)
	if errors.Is(err, blob.ErrNotFound) {
		f.log.Error("a result is gone although its time is not up: look for who deletes files among the results", "event", "result_lost", "job_id", job.ID.String())
		return nil, removed
	}
	if err != nil {
		return nil, storageAway(err)
	}
	return &opened{File: file, name: xmlName(args.Name), sum: result.SHA256, made: job.FinishedAt}, nil
}

// patience is after how long it makes sense to ask again; 0: never.
func patience(job holdfast.Job) time.Duration {
	if job.State.Terminal() || job.Kind != (Conversion{}).Kind() {
		return 0
	}
	wait := 2 * time.Second
	if job.State == holdfast.Queued {
		wait = max(wait, job.DueAt.Sub(job.AsOf))
	}
	return wait
}

// xmlName is what a result is called: as the PDF was, but for its ending.
func xmlName(pdf string) string {
	if ending := path.Ext(pdf); strings.EqualFold(ending, ".pdf") && len(pdf) > len(ending) {
		pdf = strings.TrimSuffix(pdf, ending)
	}
	return pdf + ".xml"
}

// disposition names a file for whoever saves it (RFC 6266): in plain letters for everybody, and as it is for those who understand that.
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

// safe reports whether a letter needs no quoting in either form.
func safe(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
}
