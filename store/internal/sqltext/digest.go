package sqltext

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Digest identifies what a draft asks for, under one idempotency key: it is equal for drafts that ask for the same,
// whatever their ids. It must be computed after Prepare, so that a default that was left out and one that was written
// out give the same digest. Digests are stored: what they cover, and in which order, must not change.
func Digest(d holdfast.Draft) [32]byte {
	w := digester{sha256.New()}
	w.text(d.Kind)
	w.text(d.Queue)
	w.text(string(d.Args))
	w.number(int64(d.Priority))
	w.text(d.Owner)
	w.number(int64(len(d.Tags)))
	for _, tag := range d.Tags {
		w.text(tag)
	}
	w.number(int64(d.Delay))
	w.instant(d.RunAt)
	w.number(int64(d.ExpireIn))
	w.instant(d.ExpireAt)
	w.number(int64(d.MaxAttempts))
	w.text(d.UniqueKey)
	if d.UniqueDone {
		w.number(1)
	} else {
		w.number(0)
	}
	if d.Dependency != "" { // younger than the first digests, so written only if there is one
		w.text("dependency")
		w.text(d.Dependency)
	}
	if d.RetryWithin != 0 {
		w.text("retry within")
		w.number(int64(d.RetryWithin))
	}
	w.membership(d)
	if r := d.Replace; r != nil {
		w.text(fmt.Sprintf("replace %t %d %t", r.Start, int64(r.MaxAge), r.Follow))
	}
	return [32]byte(w.Sum(nil))
}

// A digester writes every field with its length, so that no two lists of fields have the same bytes.
type digester struct{ hash.Hash }

func (w digester) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	w.Write(b[:]) // a hash never returns an error
}

func (w digester) text(s string) {
	w.number(int64(len(s)))
	w.Write([]byte(s))
}

// instant writes seconds and nanoseconds: the same instant in another zone gives the same digest.
func (w digester) instant(t time.Time) {
	if t.IsZero() {
		w.number(0)
		return
	}
	w.number(1)
	w.number(t.Unix())
	w.number(int64(t.Nanosecond()))
}

// membership writes the group of a draft, its place in it, and what it waits for.
func (w digester) membership(d holdfast.Draft) {
	if !d.Group.IsZero() {
		w.text("group")
		w.text(string(d.Group[:]))
	}
	if len(d.After) > 0 {
		w.text("after")
		w.number(int64(len(d.After)))
		for _, id := range d.After {
			w.text(string(id[:]))
		}
	}
	if d.AfterAll {
		w.text("after all")
	}
	if len(d.When) > 0 {
		w.text("when")
		w.number(int64(len(d.When)))
		for _, c := range d.When {
			w.text(string(c.Job[:]))
			w.text(c.Step)
			w.text(string(c.On))
		}
	}
	if d.Step != "" {
		w.text("step")
		w.text(d.Step)
	}
}
