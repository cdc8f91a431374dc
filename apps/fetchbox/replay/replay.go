// Package replay sends resources whose dead letters are in the stream to their queue again: selected by sequence number, code, host or time, first a canary, then the
// rest at a limited rate, with an automatic stop when too many fail again.
//
// Package redrive of Holdfast decides how many to take and when; the store takes each at most once per replay. A dead letter is replayed only while its resource is
// still failed in the same generation. So each dead letter is replayed at most once, whatever else people do meanwhile.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/store"
)

// A Filter selects dead letters. Zero fields match everything.
type Filter struct {
	From  uint64      `json:"from,omitempty"` // first sequence number
	To    uint64      `json:"to,omitempty"`   // last sequence number; the end of the stream when the replay begins
	Code  string      `json:"code,omitempty"` // of the failure; a prefix such as DOWNLOAD_ matches all codes that begin with it
	Host  string      `json:"host,omitempty"` // of the resource
	Job   holdfast.ID `json:"job,omitzero"`
	Owner string      `json:"owner,omitempty"`
	Since time.Time   `json:"since,omitzero"` // failed at this time or later
	Until time.Time   `json:"until,omitzero"` // failed before this time
}

// Matches reports whether the filter selects a dead letter.
func (f *Filter) Matches(l deadletter.Letter) bool {
	code := l.GetFailureCode()
	return (f.Code == "" || f.Code == code || strings.HasSuffix(f.Code, "_") && strings.HasPrefix(code, f.Code)) &&
		(f.Host == "" || strings.EqualFold(f.Host, l.Host())) &&
		(f.Job.IsZero() || f.Job.String() == l.GetJobId()) && (f.Owner == "" || f.Owner == l.GetOwner()) &&
		(f.Since.IsZero() || !l.FailedAt().Before(f.Since)) && (f.Until.IsZero() || l.FailedAt().Before(f.Until)) &&
		l.Sequence >= f.From && (f.To == 0 || l.Sequence <= f.To)
}

// A Spec is what a person asks for.
type Spec struct {
	Filter    Filter  `json:"filter"`
	Canary    int     `json:"canary,omitempty"`     // resources to take first; the others follow only if these end well
	PerSecond float64 `json:"per_second,omitempty"` // 10 when zero
	Limit     int     `json:"limit,omitempty"`      // total number; 0: all that are selected
	Reason    string  `json:"reason,omitempty"`
	Actor     string  `json:"actor"`
}

func (s *Spec) redrive() redrive.Spec {
	return redrive.Spec{All: true, Canary: s.Canary, PerSecond: s.PerSecond, Limit: s.Limit, Actor: s.Actor, Reason: s.Reason}
}

// Check returns an error that wraps holdfast.ErrInvalid and names every problem, or nil.
func (s *Spec) Check() error {
	err := s.redrive().Check()
	if s.Filter.To > 0 && s.Filter.To < s.Filter.From {
		err = errors.Join(err, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the last sequence number is below the first"})
	}
	return err
}

// Progress is the complete state of a replay.
type Progress struct {
	redrive.Progress
	Filter Filter `json:"filter"`
}

// A Preview says what a replay would do.
type Preview struct {
	Letters  int            `json:"letters"`  // that the filter selects
	Eligible int            `json:"eligible"` // whose resource is still failed and would be replayed
	Codes    map[string]int `json:"codes"`    // of the eligible ones
	Hosts    map[string]int `json:"hosts"`    // at most a hundred
	Last     uint64         `json:"last"`     // the last sequence number that was looked at
	More     bool           `json:"more"`     // the preview stopped at its limit: there are more
}

const (
	namespace = "fetchbox-replay"
	maxLook   = 20_000 // dead letters that a preview reads
	lookStep  = 2000   // dead letters that one step of a replay reads
	maxHosts  = 100
	interval  = time.Second
)

// A Store is the part of a store that replays use.
type Store interface {
	Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error)
	Records(ctx context.Context, namespace string) ([]store.Record, error)
	Apply(ctx context.Context, c store.Change) error
	Redrive(ctx context.Context, r store.Redrive) ([]error, error)
	Redriven(ctx context.Context, redrive holdfast.ID) (store.RedriveCounts, error)
}

// A Runner carries out replays. Several processes may run one on the same store and stream.
type Runner struct {
	Store  Store
	Stream *deadletter.Stream
}

// Preview says what a replay would do, and changes nothing.
func (r *Runner) Preview(ctx context.Context, s Spec) (Preview, error) {
	p := Preview{Codes: map[string]int{}, Hosts: map[string]int{}}
	if err := s.Check(); err != nil {
		return p, err
	}
	looked := 0
	for letter, err := range r.Stream.From(ctx, s.Filter.From) {
		if err != nil {
			return p, err
		}
		if s.Filter.To > 0 && letter.Sequence > s.Filter.To {
			break
		}
		if looked++; looked > maxLook {
			p.More = true
			break
		}
		p.Last = letter.Sequence
		if !s.Filter.Matches(letter) {
			continue
		}
		p.Letters++
		if _, ok, err := r.eligible(ctx, letter); err != nil {
			return p, err
		} else if !ok {
			continue
		}
		p.Eligible++
		p.Codes[letter.GetFailureCode()]++
		if host := letter.Host(); p.Hosts[host] > 0 || len(p.Hosts) < maxHosts {
			p.Hosts[host]++
		}
	}
	return p, nil
}

// eligible reports whether the resource of a dead letter is still failed by that very failure.
func (r *Runner) eligible(ctx context.Context, l deadletter.Letter) (holdfast.ID, bool, error) {
	id, err := holdfast.ParseID(l.GetTaskId())
	if err != nil {
		return id, false, nil
	}
	job, err := r.Store.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		return id, false, nil
	}
	return id, err == nil && job.State == holdfast.Failed && !job.Discarded && job.Generation == int(l.GetGeneration()), err
}

// Start starts a replay. It covers what is in the stream now: what fails again is not replayed by it once more.
func (r *Runner) Start(ctx context.Context, s Spec) (Progress, error) {
	if err := s.Check(); err != nil {
		return Progress{}, err
	}
	at, err := r.Stream.Position(ctx)
	if err != nil {
		return Progress{}, err
	}
	if s.Filter.To == 0 || s.Filter.To > at.Last {
		s.Filter.To = at.Last
	}
	p := Progress{Filter: s.Filter, Progress: redrive.Start(holdfast.NewID(), s.redrive(), time.Now().UTC())}
	p.Exhausted = s.Filter.To == 0 // the stream is empty
	return p, r.save(ctx, &store.Record{Namespace: namespace, Name: p.ID.String()}, "started", p)
}

// List returns all replays, the newest first.
func (r *Runner) List(ctx context.Context) ([]Progress, error) {
	records, err := r.Store.Records(ctx, namespace)
	if err != nil {
		return nil, err
	}
	list := make([]Progress, 0, len(records))
	for _, record := range records {
		var p Progress
		if err := json.Unmarshal(record.Body, &p); err != nil {
			return nil, fmt.Errorf("the record of replay %s cannot be read: %w", record.Name, err)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Progress) int { return slices.Compare(b.ID[:], a.ID[:]) })
	return list, nil
}

// Cancel ends a replay for good. Resources that it has taken continue.
func (r *Runner) Cancel(ctx context.Context, id holdfast.ID, actor string) error {
	for {
		record, p, err := r.read(ctx, id)
		if err != nil {
			return err
		}
		if p.Progress, err = redrive.Cancel(p.Progress, actor, "", time.Now().UTC()); err != nil {
			return err
		}
		if err := r.save(ctx, &record, "cancelled", p); !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
}

func (r *Runner) read(ctx context.Context, id holdfast.ID) (record store.Record, p Progress, err error) {
	records, err := r.Store.Records(ctx, namespace)
	if err != nil {
		return record, p, err
	}
	for _, record := range records {
		if record.Name == id.String() {
			return record, p, json.Unmarshal(record.Body, &p)
		}
	}
	return record, p, &holdfast.Error{Err: holdfast.ErrNotFound, Message: "there is no replay " + id.String()}
}

// Step advances every running replay. It is a duty: any process may run it at any time.
func (r *Runner) Step(ctx context.Context) error {
	records, err := r.Store.Records(ctx, namespace)
	if err != nil {
		return err
	}
	var all []error
	for _, record := range records {
		var p Progress
		if json.Unmarshal(record.Body, &p) != nil || p.State != redrive.Running {
			continue
		}
		if len(p.Pending) == 0 && time.Since(p.StepAt) < interval*4/5 && p.StepAt.After(p.StartedAt) {
			continue // another process has just made a step
		}
		if err := r.step(ctx, record, p); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			all = append(all, fmt.Errorf("replay %s: %w", p.ID, err))
		}
	}
	return errors.Join(all...)
}

// step carries out what was planned before, then plans the next resources and carries that out. The plan is saved before it is carried out, and carrying it out is
// idempotent, so each dead letter is replayed once, whichever process is killed when.
func (r *Runner) step(ctx context.Context, record store.Record, p Progress) error {
	if len(p.Pending) > 0 {
		if err := r.takePending(ctx, &p); err != nil {
			return err
		}
	}
	counts, err := r.Store.Redriven(ctx, p.ID)
	if err != nil {
		return err
	}
	was := p.State
	take, next, _ := redrive.Next(p.Progress, counts, time.Now().UTC())
	p.Progress = next
	if take > 0 {
		if err := r.plan(ctx, &p, take); err != nil {
			return err
		}
	}
	event := ""
	if p.State != was {
		event = string(p.State)
	}
	if err := r.save(ctx, &record, event, p); err != nil || len(p.Pending) == 0 {
		return err
	}
	if err := r.takePending(ctx, &p); err != nil {
		return err
	}
	return r.save(ctx, &record, "", p)
}

// takePending sends the planned resources to their queue. Repeated, it does so once.
func (r *Runner) takePending(ctx context.Context, p *Progress) error {
	answers, err := r.Store.Redrive(ctx, p.Progress.Step(p.Pending))
	if err != nil {
		return err
	}
	var refused []redrive.Refusal
	for i, answer := range answers {
		if answer != nil {
			refused = append(refused, redrive.Refusal{Job: p.Pending[i], Why: answer.Error()})
		}
	}
	p.Progress = p.AfterStep(refused)
	return nil
}

// plan selects the next resources. The cursor is the sequence number after which the next step continues.
func (r *Runner) plan(ctx context.Context, p *Progress, take int) error {
	var picked []holdfast.ID
	after, _ := strconv.ParseUint(p.Cursor, 10, 64) // empty at the beginning
	last, looked := true, 0
	for letter, err := range r.Stream.From(ctx, max(after+1, p.Filter.From)) {
		if err != nil {
			return err
		}
		if letter.Sequence > p.Filter.To {
			break
		}
		if looked++; looked > lookStep || len(picked) == take {
			last = false
			break
		}
		after = letter.Sequence
		if !p.Filter.Matches(letter) {
			continue
		}
		id, ok, err := r.eligible(ctx, letter)
		if err != nil {
			return err
		}
		if ok && !slices.Contains(picked, id) {
			picked = append(picked, id)
		}
	}
	p.Progress = p.Plan(picked, strconv.FormatUint(after, 10), last)
	return nil
}

func (r *Runner) save(ctx context.Context, record *store.Record, event string, p Progress) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	record.Body = body
	change := store.Change{Records: []store.Record{*record}}
	if event != "" {
		change.Events = []store.Event{{Subject: "replay/" + p.ID.String(), Name: event, Actor: p.Actor, Reason: p.Spec.Reason}}
	}
	if err := r.Store.Apply(ctx, change); err != nil {
		return err
	}
	record.Version++
	return nil
}
