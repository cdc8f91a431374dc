// Package ledger keeps a snapshot of every FetchBox job in an embedded key-value store (bbolt): how many resources are where, the last error, the status, and where
// the dead letter is that made it fail. A snapshot is a function of the store's event feed and of nothing else. So a ledger that was lost is rebuilt from the feed and
// then equals the old one.
package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A Status is the status of a FetchBox job.
type Status string

// The statuses of a job.
const (
	Queued     Status = "queued"     // no resource was started yet
	Processing Status = "processing" // some resources have not ended
	Complete   Status = "complete"   // all resources are stored
	Partial    Status = "partial"    // all have ended, and some failed after retries or were cancelled
	Failed     Status = "failed"     // all resources failed, or one failed with a code that is never retried
	Cancelled  Status = "cancelled"  // all resources were cancelled
)

// FailureInfo is the last failure of a resource of a job.
type FailureInfo struct {
	Code     string            `json:"code"`
	Message  string            `json:"message"`
	Context  map[string]string `json:"context,omitempty"`
	Resource holdfast.ID       `json:"resource"`
	Attempt  int               `json:"attempt"`
	At       time.Time         `json:"at"`
}

// A JobSnapshot is what the ledger has of one job.
type JobSnapshot struct {
	ID                 holdfast.ID  `json:"id"`
	Owner              string       `json:"owner,omitempty"`
	Status             Status       `json:"status"`
	Resources          int          `json:"resources_total"`
	ResourcesQueued    int          `json:"resources_queued"` // also those that wait for a retry
	ResourcesRunning   int          `json:"resources_processing"`
	ResourcesComplete  int          `json:"resources_complete"`
	ResourcesFailed    int          `json:"resources_failed"`
	ResourcesCancelled int          `json:"resources_cancelled"`
	NeverRetried       int          `json:"resources_never_retried"` // of those that failed, with a code that is never retried
	Retries            int          `json:"retries"`
	LastError          *FailureInfo `json:"last_error"`
	// Failures is how many resources are failed, by the code of the failure.
	Failures map[string]int `json:"failures,omitempty"`
	// DeadLetter is the sequence number of the job's last dead letter in the stream of dead letters; 0 while none of its resources is failed.
	DeadLetter uint64    `json:"dead_letter,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
	Seq        int64     `json:"seq"` // number of the last event that changed it
}

// A member is what the ledger has of one resource.
type member struct {
	State  holdfast.State `json:"s"`
	Never  bool           `json:"n,omitempty"` // failed with a code that is never retried
	Code   string         `json:"c,omitempty"` // of its present failure
	Letter uint64         `json:"l,omitempty"` // of its present failure
}

var (
	bucketMeta    = []byte("meta")
	bucketJobs    = []byte("jobs")
	bucketMembers = []byte("members")
	bucketOwners  = []byte("owners") // keys are owner, a zero byte, and the id of a job
	bucketCodes   = []byte("codes")  // how many resources are failed: keys are owner, a zero byte, and the code
	keyAfter      = []byte("after")
	keyFormat     = []byte("format")
)

// format is the version of what the buckets contain. A ledger of another version is cleared when it is opened, so that it is built again from the feed.
const format = "2"

const (
	openTimeout = 5 * time.Second
	feedPage    = 500
)

// A Config says which events are about resources of FetchBox, and what their codes mean.
type Config struct {
	Kind      string                 // of the jobs that fetch a resource
	Letter    string                 // name of the event that says where the dead letter of a resource is; its Request is the sequence number
	Retryable func(code string) bool // whether resources that failed with a code are retried
}

// A Ledger is open in one process at a time. It is safe for concurrent use.
type Ledger struct {
	db  *bbolt.DB
	cfg Config
}

// Open opens or creates the ledger in a file.
func Open(file string, cfg Config) (*Ledger, error) {
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: openTimeout})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("the ledger is open in another process: stop that one, or give this one a data directory of its own: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("the ledger cannot be opened: %w; it can be deleted: it is built again from the store", err)
	}
	l := &Ledger{db: db, cfg: cfg}
	if err := db.Update(prepare); err != nil {
		return nil, errors.Join(fmt.Errorf("the ledger cannot be written: %w", err), db.Close())
	}
	return l, nil
}

var buckets = [][]byte{bucketMeta, bucketJobs, bucketMembers, bucketOwners, bucketCodes}

// prepare creates what is missing, and clears a ledger of another format.
func prepare(tx *bbolt.Tx) error {
	if meta := tx.Bucket(bucketMeta); meta != nil && string(meta.Get(keyFormat)) == format {
		return nil
	}
	return recreate(tx)
}

func recreate(tx *bbolt.Tx) error {
	for _, name := range buckets {
		if err := tx.DeleteBucket(name); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
			return err
		}
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketMeta).Put(keyFormat, []byte(format))
}

// ownerKey is the key of a job in the index by owner.
func ownerKey(owner string, job holdfast.ID) []byte {
	return append(append([]byte(owner), 0), job[:]...)
}

// Close closes the file.
func (l *Ledger) Close() error { return l.db.Close() }

// A Feed is where the events come from.
type Feed interface {
	Feed(ctx context.Context, after int64, limit int) (store.Feed, error)
}

// Step reads the events since the last step. It returns how many events are left, 0 once it has caught up, and how many the store has already deleted unread: what
// these changed is missing in the snapshots.
func (l *Ledger) Step(ctx context.Context, from Feed) (left, missed int64, err error) {
	for ctx.Err() == nil {
		after, feed, err := l.read(ctx, from)
		if err != nil {
			return left, missed, err
		}
		missed += feed.Missed
		left = feed.Head - feed.Next
		if feed.Next == after {
			return 0, missed, nil
		}
		if err := l.apply(after, feed); err != nil {
			return left, missed, err
		}
	}
	return left, missed, ctx.Err()
}

// CatchUp reads one page of events, so that a client that has just changed something finds it. It does not replace Step: a page before which the store has deleted
// events is left to Step, which reports them.
func (l *Ledger) CatchUp(ctx context.Context, from Feed) error {
	after, feed, err := l.read(ctx, from)
	if err != nil || feed.Missed > 0 || feed.Next == after {
		return err
	}
	return l.apply(after, feed)
}

// read returns the next page of the feed, and the number of the event after which it begins.
func (l *Ledger) read(ctx context.Context, from Feed) (after int64, feed store.Feed, err error) {
	if after, err = l.After(); err != nil {
		return after, feed, err
	}
	feed, err = from.Feed(ctx, after, feedPage)
	return after, feed, err
}

// After returns the number of the last event that the ledger has.
func (l *Ledger) After() (after int64, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		after = position(tx)
		return nil
	})
	return after, err
}

// position returns the number of the last event that the ledger has.
func position(tx *bbolt.Tx) int64 {
	text := tx.Bucket(bucketMeta).Get(keyAfter)
	if len(text) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(text))
}

// Clear deletes everything, so that the next step builds the ledger again.
func (l *Ledger) Clear() error { return l.db.Update(recreate) }

// Job returns the snapshot of a job; false: the ledger has none.
func (l *Ledger) Job(id holdfast.ID) (snapshot JobSnapshot, found bool, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		text := tx.Bucket(bucketJobs).Get(id[:])
		if found = text != nil; !found {
			return nil
		}
		return json.Unmarshal(text, &snapshot)
	})
	return snapshot, found, err
}

// DeadLetter returns the sequence number of the dead letter of a failed resource; 0: it is not failed, or its dead letter is not published yet.
func (l *Ledger) DeadLetter(job, resource holdfast.ID) (seq uint64, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		var m member
		text := tx.Bucket(bucketMembers).Get(slices.Concat(job[:], resource[:]))
		if text == nil {
			return nil
		}
		err := json.Unmarshal(text, &m)
		seq = m.Letter
		return err
	})
	return seq, err
}

// Failures returns how many resources of an owner are failed, by code. An empty owner selects the resources of all.
func (l *Ledger) Failures(owner string) (count map[string]int, err error) {
	count = map[string]int{}
	var prefix []byte
	if owner != "" {
		prefix = append([]byte(owner), 0)
	}
	err = l.db.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucketCodes).Cursor()
		for key, n := cursor.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix); key, n = cursor.Next() {
			_, code, _ := bytes.Cut(key, []byte{0})
			count[string(code)] += int(binary.BigEndian.Uint64(n))
		}
		return nil
	})
	return count, err
}

// addFailures changes how many resources of an owner are failed with a code.
func addFailures(tx *bbolt.Tx, owner, code string, n int) error {
	bucket, key := tx.Bucket(bucketCodes), append(append([]byte(owner), 0), code...)
	if text := bucket.Get(key); len(text) == 8 {
		n += int(binary.BigEndian.Uint64(text))
	}
	if n <= 0 {
		return bucket.Delete(key)
	}
	return bucket.Put(key, binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// Jobs returns up to limit snapshots, the newest first, of jobs before the given one; with a zero id, the newest of all. An empty owner selects the jobs of all.
func (l *Ledger) Jobs(owner string, before holdfast.ID, limit int) (snapshots []JobSnapshot, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		ids := newest(tx, owner, before, limit)
		for _, id := range ids {
			var s JobSnapshot
			if err := json.Unmarshal(tx.Bucket(bucketJobs).Get(id), &s); err != nil {
				return err
			}
			snapshots = append(snapshots, s)
		}
		return nil
	})
	return snapshots, err
}

// newest returns the ids of the newest jobs of an owner, or of all, before the given one.
func newest(tx *bbolt.Tx, owner string, before holdfast.ID, limit int) (ids [][]byte) {
	bucket, prefix := tx.Bucket(bucketJobs), []byte(nil)
	if owner != "" {
		bucket, prefix = tx.Bucket(bucketOwners), append([]byte(owner), 0)
	}
	if before.IsZero() {
		before = lastID
	}
	cursor := bucket.Cursor()
	key, _ := cursor.Seek(slices.Concat(prefix, before[:]))
	if key == nil {
		key, _ = cursor.Last()
	} else {
		key, _ = cursor.Prev()
	}
	for ; key != nil && bytes.HasPrefix(key, prefix) && len(ids) < limit; key, _ = cursor.Prev() {
		ids = append(ids, key[len(prefix):])
	}
	return ids
}

// lastID sorts after every id.
var lastID = holdfast.ID(bytes.Repeat([]byte{0xff}, 16))

// Forget deletes the snapshots of jobs that were created before an instant and have no resource left that may run.
func (l *Ledger) Forget(before time.Time) (count int, err error) {
	err = l.db.Update(func(tx *bbolt.Tx) error {
		var old []JobSnapshot
		cursor := tx.Bucket(bucketJobs).Cursor()
		for key, text := cursor.First(); key != nil && len(old) < feedPage; key, text = cursor.Next() {
			var s JobSnapshot
			if err := json.Unmarshal(text, &s); err != nil {
				return err
			}
			if !s.CreatedAt.Before(before) {
				break // keys are in the order of their creation
			}
			if s.ResourcesQueued+s.ResourcesRunning == 0 && s.UpdatedAt.Before(before) {
				old = append(old, s)
			}
		}
		for _, s := range old {
			if err := forget(tx, s); err != nil {
				return err
			}
		}
		count = len(old)
		return nil
	})
	return count, err
}

func forget(tx *bbolt.Tx, s JobSnapshot) error {
	var members [][]byte
	cursor := tx.Bucket(bucketMembers).Cursor()
	for key, _ := cursor.Seek(s.ID[:]); bytes.HasPrefix(key, s.ID[:]); key, _ = cursor.Next() {
		members = append(members, slices.Clone(key))
	}
	for _, key := range members {
		if err := tx.Bucket(bucketMembers).Delete(key); err != nil {
			return err
		}
	}
	for code, n := range s.Failures {
		if err := addFailures(tx, s.Owner, code, -n); err != nil {
			return err
		}
	}
	if err := tx.Bucket(bucketOwners).Delete(ownerKey(s.Owner, s.ID)); err != nil {
		return err
	}
	return tx.Bucket(bucketJobs).Delete(s.ID[:])
}
