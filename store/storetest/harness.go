package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Null is the value that makes [Subject.Corrupt] write SQL's NULL.
const Null = "\x00null"

// SQL is the column that makes [Subject.Corrupt] run its value as statements, which every database here understands.
const SQL = "\x00sql"

// A Harness makes stores to test.
type Harness struct {
	// Open makes a fresh, empty store under a clock of its own, and cleans up when the test ends.
	Open func(t testing.TB) *Subject
}

// A Subject is one store under test, with the powers over it that no user has.
type Subject struct {
	Store holdfast.Store
	// Advance moves the store's clock, also back. The clock stands still otherwise.
	Advance func(d time.Duration)
	// Reopen opens the same data once more, as another process would. The test's end closes it, if nothing did before.
	Reopen func() holdfast.Store
	// Wipe empties the store, but for its lanes.
	Wipe func()
	// Corrupt overwrites one column of one job's row in a table: "job.args" is column args of the facts. A name without a
	// column ("job") removes the row. It answers with an error when the database itself refuses such a value.
	Corrupt func(column string, id holdfast.ID, value string) error
	// Begin starts a transaction of the caller's own on the same data, and ends it.
	Begin func() (tx any, end func(commit bool) error)
	// Near is the store beneath, when Store is far from its data: transactions of the caller's own reach that far only.
	Near holdfast.Store
}

// In binds an enqueuer to a transaction of the caller's own, near the data.
func (s *Subject) In(tx any) holdfast.Enqueuer {
	if s.Near != nil {
		return s.Near.In(tx)
	}
	return s.Store.In(tx)
}

// A law is a sentence about stores, and how to find out whether it is true.
type law struct {
	sentence string
	check    func(*scene)
}

// chapters are the laws by concern, in the order in which one would explain them.
var chapters = []struct {
	name string
	laws []law
}{
	{"enqueue", enqueueLaws}, {"keys", keyLaws}, {"claim", claimLaws}, {"run", runLaws}, {"scope", scopeLaws}, {"lease", leaseLaws},
	{"settle", settleLaws}, {"release", releaseLaws}, {"benign", benignLaws}, {"fence", fenceLaws}, {"note", noteLaws}, {"keep", keepLaws}, {"reclaim", reclaimLaws},
	{"operate", operateLaws}, {"retry", retryLaws}, {"edit", editLaws}, {"edit time", editTimeLaws}, {"refusal", refusalLaws}, {"hold", holdLaws}, {"limit", limitLaws}, {"bucket", bucketLaws},
	{"tag", tagLaws}, {"fair", fairLaws}, {"record", recordLaws}, {"redrive", redriveLaws}, {"error group", errorGroupLaws},
	{"deadline", deadlineLaws}, {"experience", experienceLaws}, {"trend", trendLaws}, {"error trend", errorTrendLaws}, {"count", countLaws}, {"await", awaitLaws},
	{"group", groupLaws}, {"member", memberLaws}, {"generation", generationLaws}, {"ending", endingLaws}, {"nested", nestedLaws},
	{"after", afterLaws}, {"wait", waitLaws}, {"feed", feedLaws}, {"reader", readerLaws}, {"chain", chainLaws}, {"change", changeLaws}, {"reserve", reserveLaws},
	{"purge", purgeLaws}, {"matrix", matrixLaws}, {"forget", forgetLaws}, {"artifact", artifactLaws},
	{"inspect", inspectLaws}, {"poison", poisonLaws}, {"race", raceLaws},
}

// Laws checks every law, or those of some chapters. Laws of one chapter share a store, which is wiped before each.
func Laws(t *testing.T, h Harness, only ...string) {
	for _, chapter := range chapters {
		if len(only) > 0 && !slices.Contains(only, chapter.name) {
			continue
		}
		t.Run(chapter.name, func(t *testing.T) {
			subject := h.Open(t)
			for _, law := range chapter.laws {
				t.Run(law.sentence, func(t *testing.T) { law.try(t, subject) })
			}
		})
	}
}

// try checks one law on a wiped store. Unless the law broke the store on purpose, the audit must find nothing afterwards.
func (l law) try(t testing.TB, subject *Subject) {
	subject.Wipe()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s := &scene{TB: t, Subject: subject, ctx: ctx}
	l.check(s)
	if !s.broken && !t.Failed() {
		s.expectHealthy()
	}
}
