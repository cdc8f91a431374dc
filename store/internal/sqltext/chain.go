package sqltext

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// Link returns the hash that seals an event of a story. It covers everything in the event and the hash of the event
// before it, in one order for every store. before is that hash, nil for the first event.
func Link(before []byte, e store.Event) []byte {
	h := sha256.New()
	var size [8]byte
	part := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b))) // with lengths, two different events never have the same bytes
		h.Write(size[:])
		h.Write(b)
	}
	part(before)
	if e.Job.IsZero() {
		part(nil)
	} else {
		part(e.Job[:])
	}
	for _, text := range []string{e.Subject, e.At.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano), e.Name, e.Actor, e.Reason, e.Request} {
		part([]byte(text))
	}
	for _, n := range []int{e.Token, e.Generation} {
		binary.BigEndian.PutUint64(size[:], uint64(n))
		h.Write(size[:])
	}
	if len(e.Was) > 0 { // events that are older than this field are sealed without it
		part(e.Was)
	}
	return h.Sum(nil)
}
