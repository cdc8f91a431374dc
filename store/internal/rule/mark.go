package rule

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The audit log loses lines in one way only: Forget deletes the oldest. It leaves a mark, a line of the audit log like any other and sealed with it, that says
// how far the log was shortened. So where the log begins is itself on record, and a log that begins elsewhere was wiped.

// A Mark is what remains of forgotten lines of the audit log.
type Mark struct {
	Lines  int       // so many, this time
	Link   int       // the last of them
	Newest time.Time // when it was written; zero: it was forgotten before there were marks
	Hash   []byte    // its hash
}

// Subject and name of the line that is a mark.
const (
	MarkSubject = "audit"
	MarkName    = "shortened"
)

// MinStory is how long lines of the audit log are kept at least. No caller can have younger ones forgotten, so a mark that tells of some is a finding.
const MinStory = holdfast.MinKeepStory

// markEvery is how often a mark is made when little is to be forgotten: the log is not to be kept alive by its own marks.
const markEvery = time.Hour

// markText is what a mark says. Scanning a text, %s takes the semicolon along.
const (
	markText = "%d lines up to link %d are forgotten, the newest of %s; its hash is %s"
	markScan = "%d lines up to link %d are forgotten, the newest of %s its hash is %s"
)

// Line is the mark as a line of the audit log.
func (m Mark) Line() holdfast.Event {
	reason := fmt.Sprintf(markText, m.Lines, m.Link, m.Newest.UTC().Format(time.RFC3339Nano), hex.EncodeToString(m.Hash))
	return holdfast.Event{Subject: MarkSubject, Name: MarkName, Actor: "holdfast", Reason: reason}
}

// ReadMark reads the reason of a mark's line.
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

// Shortens reports whether so many old lines, of a limit, are to be forgotten now. last is when the log was last shortened.
func Shortens(old, limit int, last, now time.Time) bool {
	return old > 0 && (old >= limit || now.Sub(last) >= markEvery)
}
