// Package intake accepts manifests. A manifest is accepted as a whole or not at all: its tasks are stored in one call, together with the job that declares it complete and
// carries the client's idempotency key. A manifest with problems is refused, with every bad line named, and nothing is stored or retried. While the store does not work,
// storing is tried a few times before the client gets 503.
package intake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/handler"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/store"
)

const (
	acceptTimeout = 2 * time.Minute // to store a manifest that has arrived, also if the client has disconnected
	backoff       = 100 * time.Millisecond
	maxTries      = 3         // to store a manifest, inside one request
	sweepAge      = time.Hour // a group without members that is older belongs to no request in progress
)

// A Store is the part of a store that an Intake uses.
type Store interface {
	holdfast.Enqueuer
	Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error)
	Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error)
	Groups(ctx context.Context, f store.GroupFilter) (groups []holdfast.Group, cursor string, err error)
	CancelGroup(ctx context.Context, i store.Intervention) error
}

// A Config is where an Intake stores manifests, what it checks them against, and its limits.
type Config struct {
	Store    Store
	Fetcher  *fetch.Fetcher
	Proxies  *proxy.Pools
	Handlers handler.Set
	Log      *slog.Logger

	AtOnce    int    // manifests that are received at once; an owner gets half of it
	Downloads int    // attempts to download a resource, unless its manifest says otherwise
	Storage   int    // the same for attempts to store it
	Failed    func() // called after each failed try to store a manifest
}

// An Intake accepts manifests. It is safe for concurrent use.
type Intake struct {
	cfg       Config
	receiving limit.AtOnce
}

// New makes an Intake.
func New(cfg Config) *Intake { return &Intake{cfg: cfg} }

// An Accepted manifest is a job, new or of an earlier request with the same idempotency key.
type Accepted struct {
	Job       holdfast.ID `json:"id"`
	Resources int         `json:"resources"`
	Existing  bool        `json:"existing,omitempty"`
}

// accept stores a manifest: all of its resources exist, or none. While the store fails, it tries again; a repetition stores nothing twice.
func (i *Intake) accept(ctx context.Context, owner, key string, m manifest.Manifest) (Accepted, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return Accepted{}, err
	}
	sum := sha256.Sum256(text)
	job := holdfast.NewID()
	drafts, err := i.drafts(owner, key, job, hex.EncodeToString(sum[:]), &m)
	if err != nil {
		return Accepted{}, err
	}
	group := holdfast.Group{ID: job, Name: m.Name, Owner: owner}
	done := Accepted{Job: job, Resources: len(m.Resources)}
	err = i.retryInside(ctx, func() error {
		if _, err := i.cfg.Store.CreateGroup(ctx, group); err != nil && !errors.Is(err, holdfast.ErrConflict) { // a conflict: an earlier try created it
			return err
		}
		_, err := i.cfg.Store.Enqueue(ctx, drafts)
		if errors.Is(err, holdfast.ErrConflict) {
			done, err = i.existing(ctx, owner, drafts[0], err)
		}
		return err
	})
	if err != nil {
		return Accepted{}, err
	}
	if done.Existing {
		_ = i.cfg.Store.CancelGroup(ctx, store.Intervention{Group: job, Actor: owner, Reason: "the manifest had been accepted before"}) // empty; otherwise the sweep does it
		return done, nil
	}
	_ = i.cfg.Store.SealGroup(ctx, job) // otherwise the acceptance does it
	return done, nil
}

// drafts returns the acceptance and the tasks of a manifest.
func (i *Intake) drafts(owner, key string, job holdfast.ID, digest string, m *manifest.Manifest) ([]holdfast.Draft, error) {
	if key == "" {
		key = job.String() // so that a repetition inside this request stores nothing twice
	}
	acceptance, err := holdfast.NewDraft(work.Acceptance{Job: job, Resources: len(m.Resources), Digest: digest})
	if err != nil {
		return nil, err
	}
	acceptance.ID, acceptance.Queue, acceptance.Owner, acceptance.IdempotencyKey = holdfast.NewID(), work.QueueAccept, owner, "job/"+key
	drafts := make([]holdfast.Draft, 1, len(m.Resources)+1)
	drafts[0] = acceptance
	task := work.Task{Downloads: cmp.Or(m.DownloadRetryLimit, i.cfg.Downloads), Storage: cmp.Or(m.StorageRetryLimit, i.cfg.Storage)}
	for n := range m.Resources {
		task.Resource, task.Index = m.Resources[n], n+1
		draft, err := holdfast.NewDraft(task)
		if err != nil {
			return nil, err
		}
		draft.ID, draft.Queue, draft.Owner, draft.Group, draft.MaxAttempts = holdfast.NewID(), work.QueueFetch, owner, job, task.Downloads+task.Storage
		drafts = append(drafts, draft)
	}
	return drafts, nil
}

// existing returns the job of an earlier request with the same idempotency key, or of an earlier try of this one. conflict is what the store answered.
func (i *Intake) existing(ctx context.Context, owner string, acceptance holdfast.Draft, conflict error) (Accepted, error) {
	id := acceptance.ID
	if _, err := i.cfg.Store.Job(ctx, id); errors.Is(err, holdfast.ErrNotFound) {
		refused := (*holdfast.Error)(nil)
		if !errors.As(conflict, &refused) || refused.Job.IsZero() {
			return Accepted{}, conflict
		}
		id = refused.Job
	} else if err != nil {
		return Accepted{}, err
	} // otherwise an earlier try of this request succeeded, and its answer was lost
	job, err := i.cfg.Store.Job(ctx, id)
	if err != nil {
		return Accepted{}, err
	}
	var mine, theirs work.Acceptance
	if err := errors.Join(json.Unmarshal(acceptance.Args, &mine), json.Unmarshal(job.Args, &theirs)); err != nil || job.Kind != theirs.Kind() || job.Owner != owner {
		return Accepted{}, conflict
	}
	if theirs.Digest != mine.Digest {
		return Accepted{}, refusal.Error{Code: code.ValidationConflict, Line: "This Idempotency-Key was used for another manifest, job " + theirs.Job.String() + ". Send that manifest again, or use a new key."}
	}
	return Accepted{Job: theirs.Job, Resources: theirs.Resources, Existing: theirs.Job != mine.Job}, nil
}

// retryInside tries something up to maxTries times, with growing pauses, while the store fails. After that the client gets 503 with Retry-After.
// An answer that a repetition would not change is returned at once.
func (i *Intake) retryInside(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || isFinal(err) {
			return err
		}
		i.cfg.Failed()
		i.cfg.Log.Warn("storing a manifest failed", "event", "intake_retry", "attempt", n, "error", err.Error())
		if n == maxTries || ctx.Err() != nil {
			return refusal.Error{Code: code.StorageUnavailable, After: refusal.RetryAfter, Cause: err}
		}
		pause := backoff << (n - 1)
		pause += time.Duration(rand.Int64N(int64(pause)))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// isFinal reports whether an error of the store says something about the request, not about the store.
func isFinal(err error) bool {
	return errors.As(err, new(refusal.Error)) || errors.Is(err, holdfast.ErrInvalid) || errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrNotFound)
}

// Sweep cancels open groups without members that no request fills any more: their manifest was never stored.
func (i *Intake) Sweep(ctx context.Context) error {
	cursor := ""
	for {
		groups, next, err := i.cfg.Store.Groups(ctx, store.GroupFilter{State: holdfast.GroupOpen, Limit: 200, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, g := range groups {
			if err := i.cancelEmpty(ctx, g); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

func (i *Intake) cancelEmpty(ctx context.Context, g holdfast.Group) error {
	if g.AsOf.Sub(g.CreatedAt) < sweepAge {
		return nil
	}
	g, err := i.cfg.Store.Group(ctx, g.ID)
	if err != nil || g.Members.Total > 0 {
		return err
	}
	err = i.cfg.Store.CancelGroup(ctx, store.Intervention{Group: g.ID, Actor: "fetchbox", Reason: "its manifest was never stored"})
	if errors.Is(err, holdfast.ErrConflict) {
		return nil
	}
	return err
}
