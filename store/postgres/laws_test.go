package postgres_test

import (
	"testing"

	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store/storetest"
)

var harness = storetest.Harness{Open: storefixture.Postgres}

func TestTheStoreKeepsTheLaws(t *testing.T) { storetest.Laws(t, harness) }

func TestTheStoreDoesWhatTheModelDoes(t *testing.T) {
	storetest.Check(t, harness, soak.Pick("PostgreSQL: random sequences compared with the model", 80, 500))
}
