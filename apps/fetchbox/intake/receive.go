package intake

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/internal/limit"
)

const (
	idleTimeout    = 30 * time.Second // a manifest that sends nothing for this long is ended
	totalTimeout   = 10 * time.Minute // for the whole manifest to arrive
	maxIdempotency = 200              // bytes of an idempotency key
	kindLines      = "application/x-ndjson"
)

var overloaded = refusal.Error{Code: code.SystemOverloaded, Line: "Too many manifests are being received. Try again in a moment.", After: 2 * time.Second}

// Receive accepts the manifest in the body of a request, which is JSON or NDJSON. It is stored also if the client disconnects after it has arrived.
func (i *Intake) Receive(w http.ResponseWriter, r *http.Request, owner string) (Accepted, error) {
	release, ok := i.receiving.Join(limit.Share{Name: "all", Most: i.cfg.AtOnce}, limit.Share{Name: "owner " + owner, Most: max(1, i.cfg.AtOnce/2)})
	if !ok {
		return Accepted{}, overloaded
	}
	defer release()
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxIdempotency {
		return Accepted{}, refusal.Invalid("Idempotency-Key has more than " + strconv.Itoa(maxIdempotency) + " bytes.")
	}
	m, problems, err := i.readManifest(w, r)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Accepted{}, refusal.Error{Code: code.ValidationInvalidBody, Status: http.StatusRequestTimeout, Line: "The manifest arrived too slowly. Send it again."}
	case errors.As(err, new(refusal.Error)):
		return Accepted{}, err
	case err != nil:
		return Accepted{}, refusal.Error{Code: code.ValidationInvalidBody, Line: "The manifest did not arrive completely. Send it again.", Cause: err}
	case problems.Count > 0:
		return Accepted{}, refuse(problems)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), acceptTimeout)
	defer cancel()
	return i.accept(ctx, owner, key, m)
}

// AcceptURLs accepts a manifest of addresses, one in each line.
func (i *Intake) AcceptURLs(ctx context.Context, owner string, defaults manifest.Defaults, urls string) (Accepted, error) {
	var lines strings.Builder
	for line := range strings.Lines(urls) {
		if line = strings.TrimSpace(line); line != "" {
			text, _ := json.Marshal(manifest.Resource{URL: line}) // text always marshals
			lines.Write(append(text, '\n'))
		}
	}
	m, problems, err := manifest.ReadLines(strings.NewReader(lines.String()), defaults, i.checker())
	switch {
	case err != nil:
		return Accepted{}, err
	case problems.Count > 0:
		return Accepted{}, refuse(problems)
	}
	return i.accept(ctx, owner, "", m)
}

// readManifest reads the body: JSON, or NDJSON with the defaults in the query.
func (i *Intake) readManifest(w http.ResponseWriter, r *http.Request) (manifest.Manifest, *manifest.Problems, error) {
	check := i.checker()
	body := &patientReader{from: r.Body, control: http.NewResponseController(w), until: time.Now().Add(totalTimeout)}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == kindLines:
		q := r.URL.Query()
		d := manifest.Defaults{Name: q.Get("name"), Proxy: q.Get("proxy"), Region: q.Get("region"), Handler: q.Get("handler")}
		for field, into := range map[string]*int{"download_retry_limit": &d.DownloadRetryLimit, "storage_retry_limit": &d.StorageRetryLimit} {
			if text := q.Get(field); text != "" {
				if *into, err = strconv.Atoi(text); err != nil {
					return manifest.Manifest{}, nil, refusal.Invalid(field + " must be a number.")
				}
			}
		}
		return manifest.ReadLines(body, d, check)
	case err == nil && (kind == "application/json" || kind == "application/x-www-form-urlencoded"): // curl --data sends the latter
		return manifest.ReadJSON(body, check)
	}
	return manifest.Manifest{}, nil, refusal.Error{Code: code.ValidationInvalidBody, Status: http.StatusUnsupportedMediaType, Line: "Send Content-Type: application/json with a manifest, or " + kindLines + " with one resource in each line."}
}

// A patientReader moves the read deadline of a connection while data arrives.
type patientReader struct {
	from    interface{ Read([]byte) (int, error) }
	control *http.ResponseController
	until   time.Time
	moved   time.Time
}

// Read reads with a deadline of its own.
func (p *patientReader) Read(to []byte) (int, error) {
	if now := time.Now(); now.Sub(p.moved) > time.Second {
		p.moved = now
		deadline := now.Add(idleTimeout)
		if p.until.Before(deadline) {
			deadline = p.until
		}
		_ = p.control.SetReadDeadline(deadline) // the recorder of a test has no deadlines
	}
	return p.from.Read(to)
}
