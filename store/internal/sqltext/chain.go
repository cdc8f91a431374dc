package sqltext

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Link is the hash that seals a line of a story to the one before it: of everything the line says, in one order for every store. before is
// the hash of the line before it, nil for the first.
func Link(before []byte, e holdfast.Event) []byte {
	h := sha256.New()
	var size [8]byte
	part := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b))) // so that no two lines read alike
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
	if len(e.Was) > 0 { // lines from before there were such values are sealed without them
		part(e.Was)
	}
	return h.Sum(nil)
}
