package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Null is the value with which [Subject.Corrupt] writes NULL.
const Null = "\x00null"

// SQL is the column with which [Subject.Corrupt] runs its value as SQL statements, which all databases here understand.
const SQL = "\x00sql"

// A Harness opens stores to test.
type Harness struct {
	// Open opens a new, empty store with a clock of its own, and removes it when the test ends.
	Open func(t testing.TB) *Subject
}

// A Subject is one store under test, with controls that users do not have.
type Subject struct {
	Store store.Store
	// Advance moves the store's clock, also back. The clock does not move otherwise.
	Advance func(d time.Duration)
	// Reopen opens the same data once more, as another process would. It is closed when the test ends, if not before.
	Reopen func() store.Store
	// Wipe deletes everything but the lanes.
	Wipe func()
	// Corrupt overwrites one column of a job's row in a table: "job.args" is column args of the facts. A name without a column ("job") deletes the
	// row. It returns an error if the database refuses the value.
	Corrupt func(column string, id holdfast.ID, value string) error
	// Begin starts a transaction of the caller on the same data, and returns it with a function that ends it.
	Begin func() (tx any, end func(commit bool) error)
	// Near is the local store if Store is remote: callers' transactions work only on a local store.
	Near store.Store
}

// In returns the local store inside a caller's transaction.
func (s *Subject) In(tx any) store.Tx {
	if s.Near != nil {
		return s.Near.In(tx)
	}
	return s.Store.In(tx)
}

// A law is a sentence about stores, with a check that it holds.
type law struct {
	sentence string
	check    func(*scene)
}

// chapters are the laws by subject, in the order in which one would explain them.
var chapters = []struct {
	name string
	laws []law
}{
	{"enqueue", enqueueLaws}, {"keys", keyLaws}, {"replace", replaceLaws}, {"claim", claimLaws}, {"run", runLaws}, {"scope", scopeLaws}, {"lease", leaseLaws},
	{"settle", settleLaws}, {"release", releaseLaws}, {"benign", benignLaws}, {"fence", fenceLaws}, {"complete", completeLaws}, {"settle enqueue", settleEnqueueLaws}, {"note", noteLaws}, {"keep", keepLaws}, {"reclaim", reclaimLaws},
	{"operate", operateLaws}, {"retry", retryLaws}, {"edit", editLaws}, {"edit time", editTimeLaws}, {"refusal", refusalLaws}, {"hold", holdLaws}, {"limit", limitLaws}, {"bucket", bucketLaws},
	{"tag", tagLaws}, {"fair", fairLaws}, {"record", recordLaws}, {"redrive", redriveLaws}, {"error group", errorGroupLaws},
	{"deadline", deadlineLaws}, {"experience", experienceLaws}, {"trend", trendLaws}, {"error trend", errorTrendLaws}, {"count", countLaws}, {"await", awaitLaws},
	{"group", groupLaws}, {"member", memberLaws}, {"generation", generationLaws}, {"ending", endingLaws}, {"nested", nestedLaws},
	{"after", afterLaws}, {"wait", waitLaws}, {"step", stepLaws}, {"condition", conditionLaws}, {"feed", feedLaws}, {"reader", readerLaws}, {"chain", chainLaws}, {"change", changeLaws}, {"reserve", reserveLaws},
	{"purge", purgeLaws}, {"matrix", matrixLaws}, {"delete history", deleteHistoryLaws}, {"artifact", artifactLaws},
	{"inspect", inspectLaws}, {"poison", poisonLaws}, {"race", raceLaws},
}

// Laws checks every law, or those of the given chapters. The laws of a chapter share a store, which is wiped before each.
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

// try checks one law on a wiped store. Unless the law damaged the store on purpose, the integrity check must pass afterwards.
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
