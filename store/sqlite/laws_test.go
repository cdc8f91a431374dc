package sqlite_test

import (
	"testing"

	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store/storetest"
)

var harness = storetest.Harness{Open: storefixture.SQLite}

func TestTheStoreKeepsTheLaws(t *testing.T) { storetest.Laws(t, harness) }

func TestTheStoreDoesWhatTheModelDoes(t *testing.T) {
	storetest.Check(t, harness, soak.Pick("SQLite: random sequences compared with the model", 200, 2000))
}

func TestTheModelCheckCatchesBrokenStores(t *testing.T) {
	storetest.SelfTest(t, harness, soak.Pick("SQLite: broken stores that the model check must notice, every n-th, n", 4, 1))
}
