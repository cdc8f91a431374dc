package ledger

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// apply writes what a page of the feed changes, in one transaction with the ledger's position in the feed. The page begins after an event; if the ledger has later ones by
// now, another call has applied the page, and this one changes nothing.
func (l *Ledger) apply(after int64, feed store.Feed) error {
	return l.db.Update(func(tx *bbolt.Tx) error {
		if position(tx) != after {
			return nil
		}
		p := page{ledger: l, tx: tx, jobs: map[holdfast.ID]*JobSnapshot{}}
		for i := range feed.Events {
			e := &feed.Events[i]
			if e.Kind != l.cfg.Kind || e.Job.IsZero() || e.Group.IsZero() {
				continue
			}
			if err := p.add(e); err != nil {
				return err
			}
		}
		if err := p.save(); err != nil {
			return err
		}
		return tx.Bucket(bucketMeta).Put(keyAfter, binary.BigEndian.AppendUint64(nil, uint64(feed.Next)))
	})
}

// A page is the events of one transaction.
type page struct {
	ledger *Ledger
	tx     *bbolt.Tx
	jobs   map[holdfast.ID]*JobSnapshot // that it changes
}

func (p *page) job(e *store.Event) (*JobSnapshot, error) {
	if s := p.jobs[e.Group]; s != nil {
		return s, nil
	}
	s := &JobSnapshot{ID: e.Group, Owner: e.Owner, CreatedAt: e.At.UTC()}
	if text := p.tx.Bucket(bucketJobs).Get(e.Group[:]); text != nil {
		if err := json.Unmarshal(text, s); err != nil {
			return nil, err
		}
	}
	p.jobs[e.Group] = s
	return s, nil
}

// add changes the snapshot of a job by an event of one of its resources.
func (p *page) add(e *store.Event) error {
	s, err := p.job(e)
	if err != nil {
		return err
	}
	members := p.tx.Bucket(bucketMembers)
	key := append(bytes.Clone(e.Group[:]), e.Job[:]...)
	var m member
	if text := members.Get(key); text != nil {
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
	}
	before := m
	s.count(m, -1)
	changed := p.ledger.cfg.next(s, &m, e)
	if m.State != holdfast.Failed {
		m.Code = ""
	}
	s.count(m, 1)
	if err := p.countFailure(s.Owner, before.Code, m.Code); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	s.settle()
	s.UpdatedAt, s.Seq = e.At.UTC(), e.Seq
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return members.Put(key, text)
}

// countFailure counts a resource of an owner whose failure had one code and now has another; an empty code is no failure.
func (p *page) countFailure(owner, before, now string) error {
	if before == now {
		return nil
	}
	for code, n := range map[string]int{before: -1, now: 1} {
		if code == "" {
			continue
		}
		if err := addFailures(p.tx, owner, code, n); err != nil {
			return err
		}
	}
	return nil
}

// next changes a resource by an event, and the job's last error. It reports whether the event changes anything.
func (c *Config) next(s *JobSnapshot, m *member, e *store.Event) bool {
	switch e.Name {
	case store.EventQueued, store.EventReleased:
		m.State = holdfast.Queued
	case store.EventProcessing, store.EventReclaimed:
		m.State = holdfast.Processing
	case store.EventRetry:
		m.State = holdfast.Queued
		s.Retries++
		s.fail(e)
	case store.EventComplete:
		m.State = holdfast.Complete
	case store.EventFailed:
		m.State, m.Never, m.Code, m.Letter = holdfast.Failed, !c.Retryable(e.Code), e.Code, 0
		s.fail(e)
	case store.EventCancelled:
		m.State = holdfast.Cancelled
	case eventManualRetry, eventRedrive:
		m.State, m.Never, m.Letter = holdfast.Queued, false, 0
	case c.Letter:
		seq, err := strconv.ParseUint(e.Request, 10, 64)
		if err != nil || m.State != holdfast.Failed { // it was retried before its dead letter was published
			return false
		}
		m.Letter, s.DeadLetter = seq, seq
	default:
		return false
	}
	return true
}

// Events of people that send a resource to its queue again.
const (
	eventManualRetry = "manual retry"
	eventRedrive     = "redrive"
)

func (s *JobSnapshot) fail(e *store.Event) {
	s.LastError = &FailureInfo{Code: e.Code, Message: e.Message, Context: e.Context, Resource: e.Job, Attempt: e.Attempt, At: e.At.UTC()}
}

// count adds a resource to the counts, or with -1 removes it.
func (s *JobSnapshot) count(m member, n int) {
	switch m.State {
	case holdfast.Queued:
		s.ResourcesQueued += n
	case holdfast.Processing:
		s.ResourcesRunning += n
	case holdfast.Complete:
		s.ResourcesComplete += n
	case holdfast.Failed:
		s.ResourcesFailed += n
		if m.Never {
			s.NeverRetried += n
		}
		if s.Failures == nil {
			s.Failures = map[string]int{}
		}
		if s.Failures[m.Code] += n; s.Failures[m.Code] == 0 {
			delete(s.Failures, m.Code)
		}
	case holdfast.Cancelled:
		s.ResourcesCancelled += n
	default:
		return // a resource that the ledger does not know yet
	}
	s.Resources += n
}

// settle sets the status by the counts. A job points at a dead letter while one of its resources is failed.
func (s *JobSnapshot) settle() {
	live := s.ResourcesQueued + s.ResourcesRunning
	switch {
	case s.NeverRetried > 0, s.ResourcesFailed == s.Resources:
		s.Status = Failed
	case live == s.ResourcesQueued && live == s.Resources && s.Retries == 0:
		s.Status = Queued
	case live > 0:
		s.Status = Processing
	case s.ResourcesComplete == s.Resources:
		s.Status = Complete
	case s.ResourcesCancelled == s.Resources:
		s.Status = Cancelled
	default:
		s.Status = Partial
	}
	if s.ResourcesFailed == 0 {
		s.DeadLetter = 0
	}
}

func (p *page) save() error {
	for id, s := range p.jobs {
		if s.Seq == 0 {
			continue // none of its events counted
		}
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if err := p.tx.Bucket(bucketJobs).Put(id[:], text); err != nil {
			return err
		}
		if err := p.tx.Bucket(bucketOwners).Put(ownerKey(s.Owner, id), []byte{}); err != nil {
			return err
		}
	}
	return nil
}
