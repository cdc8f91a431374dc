package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/internal/limit"
)

const (
	intakeIdle     = 30 * time.Second // a manifest that sends nothing for this long is ended
	intakeTotal    = 10 * time.Minute // for the whole manifest to arrive
	acceptTimeout  = 2 * time.Minute  // to store a manifest that has arrived, also if the client has disconnected
	intakeBackoff  = 100 * time.Millisecond
	retryAfter     = 5 * time.Second
	maxIdempotency = 200 // bytes of an idempotency key
	kindLines      = "application/x-ndjson"
)

// An accepted manifest is a job, new or of an earlier request with the same idempotency key.
type accepted struct {
	Job       holdfast.ID `json:"id"`
	Resources int         `json:"resources"`
	Existing  bool        `json:"existing,omitempty"`
}

// submit answers POST /api/jobs.
func (f *api) submit(w http.ResponseWriter, r *http.Request, c caller) error {
	release, ok := f.intakes.Join(limit.Share{Name: "all", Most: f.set.Intakes}, limit.Share{Name: "owner " + c.owner, Most: max(1, f.set.Intakes/2)})
	if !ok {
		return overloaded
	}
	defer release()
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxIdempotency {
		return apiError{code: code.ValidationInvalidField, line: "Idempotency-Key has more than " + strconv.Itoa(maxIdempotency) + " bytes."}
	}
	m, problems, err := f.readManifest(w, r)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return apiError{code: code.ValidationInvalidBody, status: http.StatusRequestTimeout, line: "The manifest arrived too slowly. Send it again."}
	case err != nil:
		return apiErrorOr(err, apiError{code: code.ValidationInvalidBody, line: "The manifest did not arrive completely. Send it again.", cause: err})
	case problems.Count > 0:
		return refusedManifest(problems)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), acceptTimeout)
	defer cancel()
	done, err := f.accept(ctx, c.owner, key, m)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/jobs/"+done.Job.String())
	return web.WriteJSON(w, http.StatusAccepted, done)
}

// readManifest reads the body: JSON, or NDJSON with the defaults in the query.
func (f *api) readManifest(w http.ResponseWriter, r *http.Request) (manifest.Manifest, *manifest.Problems, error) {
	check := f.checker()
	body := &patientReader{from: r.Body, control: http.NewResponseController(w), until: time.Now().Add(intakeTotal)}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == kindLines:
		q := r.URL.Query()
		d := manifest.Defaults{Name: q.Get("name"), Proxy: q.Get("proxy"), Region: q.Get("region"), Handler: q.Get("handler")}
		for field, into := range map[string]*int{"download_retry_limit": &d.DownloadRetryLimit, "storage_retry_limit": &d.StorageRetryLimit} {
			if text := q.Get(field); text != "" {
				if *into, err = strconv.Atoi(text); err != nil {
					return manifest.Manifest{}, nil, apiError{code: code.ValidationInvalidField, line: field + " must be a number."}
				}
			}
		}
		return manifest.ReadLines(body, d, check)
	case err == nil && (kind == "application/json" || kind == "application/x-www-form-urlencoded"): // curl --data sends the latter
		return manifest.ReadJSON(body, check)
	}
	return manifest.Manifest{}, nil, apiError{code: code.ValidationInvalidBody, status: http.StatusUnsupportedMediaType, line: "Send Content-Type: application/json with a manifest, or " + kindLines + " with one resource in each line."}
}

// checker returns what manifests are checked against.
func (f *api) checker() manifest.Checker {
	return manifest.Checker{Handler: f.knownHandler, Proxy: f.knownPool, Download: f.checkDownload}
}

// checkDownload refuses what no download could fetch: a private address, a header that FetchBox sets itself, a region without a proxy.
func (a *app) checkDownload(r *manifest.Resource) *manifest.Problem {
	err := a.transfer.fetcher.Check(requestOf(r))
	if err == nil {
		return nil
	}
	p := &manifest.Problem{Code: code.ValidationInvalidField, Message: err.Error()}
	switch codeOf(err) {
	case code.DownloadInvalidURL, code.DownloadAddressBlocked:
		p.Field, p.Code = "url", code.ValidationInvalidURL
	case code.DownloadUnknownPool:
		p.Field, p.Code = "region", code.ValidationUnknownName
	default:
		p.Field = "headers"
	}
	return p
}

func (f *api) knownHandler(name string) error {
	if f.transfer.handlers[name] == nil {
		return fmt.Errorf("there is no handler %s; there are %s", name, names(f.transfer.handlers))
	}
	return nil
}

func (f *api) knownPool(name string) error {
	if name == proxy.Direct {
		return nil
	}
	for _, p := range f.transfer.proxies.Status() {
		if p.Pool == name {
			return nil
		}
	}
	return fmt.Errorf("there is no proxy pool %s", name)
}

// accept stores a manifest: all of its resources exist, or none. Trouble with the store is retried inside; what is stored twice by that is stored once.
func (f *api) accept(ctx context.Context, owner, key string, m manifest.Manifest) (accepted, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return accepted{}, err
	}
	sum := sha256.Sum256(text)
	job := holdfast.NewID()
	drafts, err := f.drafts(owner, key, job, hex.EncodeToString(sum[:]), &m)
	if err != nil {
		return accepted{}, err
	}
	group := holdfast.Group{ID: job, Name: m.Name, Owner: owner}
	done := accepted{Job: job, Resources: len(m.Resources)}
	err = f.retryInside(ctx, func() error {
		if _, err := f.jobs.CreateGroup(ctx, group); err != nil && !errors.Is(err, holdfast.ErrConflict) { // a conflict: an earlier try created it
			return err
		}
		_, err := f.jobs.Enqueue(ctx, drafts)
		if errors.Is(err, holdfast.ErrConflict) {
			done, err = f.existing(ctx, owner, drafts[0], err)
		}
		return err
	})
	if err != nil {
		return accepted{}, err
	}
	if done.Existing {
		_ = f.jobs.CancelGroup(ctx, ownIntervention(job, owner, "the manifest had been accepted before")) // empty; otherwise the sweep does it
		return done, nil
	}
	_ = f.jobs.SealGroup(ctx, job) // otherwise the acceptance does it
	return done, nil
}

// drafts returns the acceptance and the tasks of a manifest.
func (f *api) drafts(owner, key string, job holdfast.ID, digest string, m *manifest.Manifest) ([]holdfast.Draft, error) {
	if key == "" {
		key = job.String() // so that a repetition inside this request stores nothing twice
	}
	acceptance, err := holdfast.NewDraft(Acceptance{Job: job, Resources: len(m.Resources), Digest: digest})
	if err != nil {
		return nil, err
	}
	acceptance.ID, acceptance.Queue, acceptance.Owner, acceptance.IdempotencyKey = holdfast.NewID(), queueAccept, owner, "job/"+key
	drafts := make([]holdfast.Draft, 1, len(m.Resources)+1)
	drafts[0] = acceptance
	task := Task{Downloads: orElse(m.DownloadRetryLimit, f.set.Limits.Downloads), Storage: orElse(m.StorageRetryLimit, f.set.Limits.Storage)}
	for i := range m.Resources {
		task.Resource, task.Index = m.Resources[i], i+1
		draft, err := holdfast.NewDraft(task)
		if err != nil {
			return nil, err
		}
		draft.ID, draft.Queue, draft.Owner, draft.Group, draft.MaxAttempts = holdfast.NewID(), queueFetch, owner, job, task.Downloads+task.Storage
		drafts = append(drafts, draft)
	}
	return drafts, nil
}

// existing returns the job of an earlier request with the same idempotency key, or of an earlier try of this one. conflict is what the store answered.
func (f *api) existing(ctx context.Context, owner string, acceptance holdfast.Draft, conflict error) (accepted, error) {
	id := acceptance.ID
	if _, err := f.jobs.Job(ctx, id); errors.Is(err, holdfast.ErrNotFound) {
		refused := (*holdfast.Error)(nil)
		if !errors.As(conflict, &refused) || refused.Job.IsZero() {
			return accepted{}, conflict
		}
		id = refused.Job
	} else if err != nil {
		return accepted{}, err
	} // otherwise an earlier try of this request succeeded, and its answer was lost
	job, err := f.jobs.Job(ctx, id)
	if err != nil {
		return accepted{}, err
	}
	var mine, theirs Acceptance
	if err := errors.Join(json.Unmarshal(acceptance.Args, &mine), json.Unmarshal(job.Args, &theirs)); err != nil || job.Kind != theirs.Kind() || job.Owner != owner {
		return accepted{}, conflict
	}
	if theirs.Digest != mine.Digest {
		return accepted{}, apiError{code: code.ValidationConflict, line: "This Idempotency-Key was used for another manifest, job " + theirs.Job.String() + ". Send that manifest again, or use a new key."}
	}
	return accepted{Job: theirs.Job, Resources: theirs.Resources, Existing: theirs.Job != mine.Job}, nil
}

// retryInside tries something up to three times, with growing pauses, while the store or the storage is in trouble. After that the client gets 503 with Retry-After.
// An answer that a repetition would not change is returned at once.
func (f *api) retryInside(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || isFinal(err) {
			return err
		}
		f.metrics.observeIntakeRetry()
		f.log.Warn("storing a manifest failed", "event", "intake_retry", "attempt", n, "error", err.Error())
		if n == f.set.Limits.IntakeRetries || ctx.Err() != nil {
			return apiError{code: code.StorageUnavailable, after: retryAfter, cause: err}
		}
		pause := intakeBackoff << (n - 1)
		pause += time.Duration(rand.Int64N(int64(pause)))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// isFinal reports whether an error of the store says something about the request, not about the store.
func isFinal(err error) bool {
	return errors.As(err, new(apiError)) || errors.Is(err, holdfast.ErrInvalid) || errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrNotFound)
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
		deadline := now.Add(intakeIdle)
		if p.until.Before(deadline) {
			deadline = p.until
		}
		_ = p.control.SetReadDeadline(deadline) // the recorder of a test has no deadlines
	}
	return p.from.Read(to)
}

func orElse[T comparable](given, otherwise T) T {
	var zero T
	if given == zero {
		return otherwise
	}
	return given
}
