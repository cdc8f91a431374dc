package client_test

import (
	"testing"

	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// The parts in which the two databases could differ through a server: times, strings, JSON, errors and long waits.
func TestAStoreOnPostgreSQLThroughAServerConforms(t *testing.T) {
	open := func(t testing.TB) *storetest.Subject { return remoteSubject(t, storefixture.Postgres(t)) }
	storetest.Laws(t, storetest.Harness{Open: open}, "enqueue", "keys", "claim", "settle", "fence", "refusal", "note", "record", "await", "member", "inspect")
}
