package rule

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// A Mark records that old entries of the audit log were deleted. DeleteHistory is the only way to delete entries, and deletes the
// oldest. It writes a mark, an entry of the audit log like any other and part of its hash chain, that says how far the log
// was shortened. So the start of the log is itself on record, and a log that starts elsewhere was tampered with.
type Mark struct {
	Lines  int       // number of deleted entries
	Link   int       // the last of them
	Newest time.Time // when it was written; zero: it was deleted before there were marks
	Hash   []byte    // its hash
}

// Subject and name of the entry that is a mark.
const (
	MarkSubject = "audit"
	MarkName    = "shortened"
)

// MinStory is how long entries of the audit log are kept at least. No caller can delete younger ones, so a mark about
// younger ones is a finding of the integrity check.
const MinStory = store.MinKeepStories

// markEvery is the minimum time between marks when few entries are deleted, so that the log does not grow by its own marks.
const markEvery = time.Hour

// markText is the reason of a mark; migrations write it too. markScan parses it: fmt.Sscanf reads the semicolon as part of %s.
const (
	markText = "%d lines up to link %d are forgotten, the newest of %s; its hash is %s"
	markScan = "%d lines up to link %d are forgotten, the newest of %s its hash is %s"
)

// Line returns the mark as an entry of the audit log.
func (m Mark) Line() store.Event {
	reason := fmt.Sprintf(markText, m.Lines, m.Link, m.Newest.UTC().Format(time.RFC3339Nano), hex.EncodeToString(m.Hash))
	return store.Event{Subject: MarkSubject, Name: MarkName, Actor: "holdfast", Reason: reason}
}

// ReadMark parses the reason of a mark's entry.
func ReadMark(reason string) (m Mark, ok bool) {
	var newest, hash string
	if n, err := fmt.Sscanf(reason, markScan, &m.Lines, &m.Link, &newest, &hash); err != nil || n != 4 {
		return Mark{}, false
	}
	var err, wrong error
	m.Newest, err = time.Parse(time.RFC3339Nano, strings.TrimSuffix(newest, ";"))
	m.Hash, wrong = hex.DecodeString(hash)
	return m, err == nil && wrong == nil && len(m.Hash) > 0
}

// Shortens reports whether a number of old entries, at most limit, are to be deleted now. last is when the log was last
// shortened.
func Shortens(old, limit int, last, now time.Time) bool {
	return old > 0 && (old >= limit || now.Sub(last) >= markEvery)
}
