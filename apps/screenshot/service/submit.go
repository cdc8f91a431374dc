package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// A Caller is who makes a request.
type Caller struct {
	Owner   string // the organisation
	User    string // id of the user
	Name    string // for the audit log
	Request string // id of the HTTP request
}

// A Submission asks for a shot.
type Submission struct {
	shot.Options
	Webhook      string `json:"webhook,omitempty"`      // is called when the shot has ended
	CacheSeconds int    `json:"cacheSeconds,omitempty"` // a picture of the same request that is not older answers at once and costs nothing
	MaxRetries   *int   `json:"maxRetries,omitempty"`   // instead of those of the type
	Key          string `json:"-"`                      // Idempotency-Key
}

const (
	maxCache = 30 * 24 * time.Hour
	maxBulk  = 100
	maxKey   = 200
)

// Submit accepts a shot: it and the reservation of its credits are stored together. It returns false if the shot existed: an earlier request had the same idempotency
// key, or a picture in the cache answers.
func (s *Service) Submit(ctx context.Context, c Caller, sub Submission) (Job, bool, error) {
	jobs, fresh, err := s.SubmitAll(ctx, c, []Submission{sub})
	if err != nil {
		return Job{}, false, err
	}
	return jobs[0], fresh[0], nil
}

// A prepared submission is valid.
type prepared struct {
	draft  holdfast.Draft
	cost   int64
	digest string
}

// SubmitAll accepts several shots, all or none. fresh says which of them are new.
func (s *Service) SubmitAll(ctx context.Context, c Caller, subs []Submission) (jobs []Job, fresh []bool, err error) {
	if len(subs) == 0 || len(subs) > maxBulk {
		return nil, nil, invalid("requests", "there are %d: give 1 to %d", len(subs), maxBulk)
	}
	plan, err := s.Plan(ctx, c.Owner)
	if err != nil {
		return nil, nil, err
	}
	priority, err := s.priorityOf(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	all := make([]prepared, len(subs))
	for i := range subs {
		if all[i], err = s.prepare(ctx, c, subs[i]); err != nil {
			return nil, nil, inBulk(err, i, len(subs))
		}
		all[i].draft.RetryWithin, all[i].draft.Priority = plan.RetryWithin, priority
	}
	jobs, fresh = make([]Job, len(subs)), make([]bool, len(subs))
	var left []int // indexes of those that no picture answers
	for i := range subs {
		cached, err := s.cached(ctx, c.Owner, all[i].digest, subs[i].CacheSeconds)
		if err != nil {
			return nil, nil, err
		}
		if cached == nil {
			left = append(left, i)
			continue
		}
		jobs[i] = *cached
	}
	if err := s.store(ctx, c, all, left, fresh); err != nil {
		return nil, nil, explain(err)
	}
	for _, i := range left {
		if jobs[i], err = s.Job(ctx, c.Owner, all[i].draft.ID); err != nil {
			return nil, nil, err
		}
	}
	s.counts.submitted.Add(int64(len(left)))
	return jobs, fresh, nil
}

// store enqueues the drafts with the indexes and reserves their credits, in one transaction. Where an earlier request had the same idempotency key, the draft gets the id of that job.
func (s *Service) store(ctx context.Context, c Caller, all []prepared, left []int, fresh []bool) error {
	if len(left) == 0 {
		return nil
	}
	drafts := make([]holdfast.Draft, len(left))
	for n, i := range left {
		drafts[n] = all[i].draft
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		receipts, err := s.jobs.In(tx.Tx).Enqueue(ctx, drafts)
		if errors.Is(err, holdfast.ErrConflict) {
			return &Error{Code: code.Validation, Message: "This Idempotency-Key was used for another request. Send that request again, or use a new key.", Cause: err}
		}
		if err != nil {
			return err
		}
		required := int64(0)
		for n, i := range left {
			if fresh[i] = !receipts[n].Existing; fresh[i] {
				required += all[i].cost
			}
			all[i].draft.ID = receipts[n].ID
		}
		for _, i := range left {
			if !fresh[i] {
				continue
			}
			err := s.ledger.Reserve(ctx, tx, credit.Reservation{Owner: c.Owner, Job: all[i].draft.ID, Generation: 1, Amount: all[i].cost})
			if err != nil {
				return s.tooExpensive(ctx, c.Owner, required, err)
			}
		}
		return nil
	})
}

// tooExpensive returns the refusal for credits that are missing.
func (s *Service) tooExpensive(ctx context.Context, owner string, required int64, err error) error {
	short := (*credit.Insufficient)(nil)
	if !errors.As(err, &short) {
		return err
	}
	if b, err := s.ledger.Balance(ctx, owner); err == nil { // what was reserved in this transaction is rolled back
		short = &credit.Insufficient{Required: required, Available: b.Available}
	}
	return &Error{Code: code.InsufficientCredits, Short: short}
}

// prepare checks a submission and makes its draft.
func (s *Service) prepare(ctx context.Context, c Caller, sub Submission) (p prepared, err error) {
	o := sub.Options.WithDefaults()
	if err := o.Check(s.cfg.Limits); err != nil {
		fields := shot.FieldErrors(nil)
		if !errors.As(err, &fields) {
			return p, err
		}
		return p, &Error{Code: code.Validation, Message: fields.Error(), Fields: fields}
	}
	if err := s.checkExtras(sub); err != nil {
		return p, err
	}
	p.digest, err = digestOf(o)
	if err != nil {
		return p, err
	}
	kind := typeOf(o)
	p.cost = costs[kind]
	r := Request{Options: o, By: c.Name, User: c.User, Cost: p.cost, Webhook: sub.Webhook}
	if sub.CacheSeconds > 0 {
		r.Cache = p.digest
	}
	if p.draft, err = holdfast.NewDraft(r.args()); err != nil {
		return p, err
	}
	p.draft.ID, p.draft.Queue, p.draft.Owner, p.draft.Dependency = holdfast.NewID(), Queue, c.Owner, dependencyOf(o)
	retries, limited, err := s.retriesOf(ctx, c, kind, sub.MaxRetries)
	if err != nil {
		return p, err
	}
	if limited {
		p.draft.MaxAttempts = retries + 1
	}
	if sub.Key != "" {
		p.draft.IdempotencyKey = "shot/" + sub.Key
	}
	return p, nil
}

func (s *Service) checkExtras(sub Submission) error {
	switch {
	case sub.CacheSeconds < 0 || time.Duration(sub.CacheSeconds)*time.Second > maxCache:
		return invalid("cacheSeconds", "it is %d: use 0 to %d", sub.CacheSeconds, int(maxCache.Seconds()))
	case sub.MaxRetries != nil && (*sub.MaxRetries < 0 || *sub.MaxRetries > maxRetries):
		return invalid("maxRetries", "it is %d: use 0 to %d", *sub.MaxRetries, maxRetries)
	case len(sub.Key) > maxKey:
		return invalid("Idempotency-Key", "it has more than %d bytes", maxKey)
	case sub.Webhook == "":
		return nil
	}
	if _, err := s.cfg.Guard.Check(sub.Webhook); err != nil {
		return invalid("webhook", "%v", err)
	}
	return nil
}

// dependencyOf returns the dependency of a shot: the host of its page, whose breaker holds its shots while the host is down.
func dependencyOf(o shot.Options) string {
	u, err := url.Parse(o.URL)
	if err != nil || o.URL == "" {
		return code.Browsers
	}
	host := strings.ToLower(u.Hostname())
	if len(host) > 120 || strings.ContainsFunc(host, func(r rune) bool { return r > 0x7f || r == '%' }) {
		sum := sha256.Sum256([]byte(host))
		return "host-" + hex.EncodeToString(sum[:8])
	}
	return host
}

// digestOf returns a hash of options: equal for requests of the same picture.
func digestOf(o shot.Options) (string, error) {
	text, err := json.Marshal(o)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// cached returns a shot that answers a request from the cache, or nil.
func (s *Service) cached(ctx context.Context, owner, digest string, seconds int) (*Job, error) {
	if seconds <= 0 {
		return nil, nil
	}
	text := ""
	oldest := time.Now().Add(-time.Duration(seconds) * time.Second).UnixMicro()
	err := s.cfg.DB.One(ctx, `SELECT job FROM screenshot_cache WHERE owner = ? AND digest = ? AND made_at > ?`, []any{owner, digest, oldest}, &text)
	if errors.Is(err, database.ErrNoRow) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id, err := holdfast.ParseID(text)
	if err != nil {
		return nil, err
	}
	job, err := s.Job(ctx, owner, id)
	if errors.As(err, new(*Error)) || err == nil && job.Result == nil {
		return nil, nil // deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	if _, err := s.cfg.Bucket.Stat(ctx, job.Stored.Key); err != nil {
		return nil, nil
	}
	job.Cached = true
	s.counts.cached.Add(1)
	return &job, nil
}

// inBulk names the request of a bulk that an error is about.
func inBulk(err error, i, of int) error {
	refused := (*Error)(nil)
	if of == 1 || !errors.As(err, &refused) {
		return err
	}
	named := *refused
	named.Fields = nil
	for _, f := range refused.Fields {
		f.Field = "requests[" + itoa(i) + "]." + f.Field
		named.Fields = append(named.Fields, f)
	}
	named.Message = "request " + itoa(i) + ": " + refused.Error()
	return &named
}
