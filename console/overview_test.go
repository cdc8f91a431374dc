package console_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/internal/fixture"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

func TestTheOverviewShowsTheCurrentState(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	text := s.shows("/overview", "Dead letters", "Waiting for retry", "is%3Aretrying", "state%3Aprocessing", "Held by breakers", "gateway", "Next probe", "No live worker handles this kind there",
		"Failed for good", "data-readout=", "DEPENDENCY_DOWN", "/queues#q-convert", "Show as table")
	for _, path := range []string{"/overview?span=15m", "/overview?span=6h", "/overview?span=24h", "/overview?span=7d"} {
		s.shows(path, "aria-current")
	}
	if strings.Contains(text, "No problems.") {
		t.Error("a store with failures shows no problems")
	}
}

// emptyScene opens a console over an empty store.
func emptyScene(t *testing.T) *scene {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "holdfast.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &scene{Scene: &fixture.Scene{Store: db, Operator: ops.New(db, ops.Config{})}, t: t}
	s.site = s.serve(console.Config{Who: func(*http.Request) (console.Visitor, error) {
		return console.Visitor{Name: "ada", Scope: apikey.Operator}, nil
	}})
	return s
}

func TestAnEmptyStoreSaysWhatToDoFirst(t *testing.T) {
	s := emptyScene(t)
	s.shows("/overview", "No jobs yet", "holdfast enqueue")
	s.shows("/failures", "No problems.", "No open errors")
}

func TestAStoreWithoutProblemsSaysSo(t *testing.T) {
	s := emptyScene(t)
	if err := s.Store.ReportWorker(t.Context(), store.WorkerInfo{Worker: "w", Queues: []string{"default"}, Kinds: []string{"mail"}, Slots: 1, For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.Enqueue(t.Context(), []holdfast.Draft{{Kind: "mail"}}); err != nil {
		t.Fatal(err)
	}
	s.shows("/overview", "No problems.", "All breakers are closed")
}
