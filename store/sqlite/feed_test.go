package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func (s *Store) mustListen(t testing.TB, events ...string) {
	t.Helper()
	if err := s.Apply(t.Context(), store.Change{Listen: []store.Listener{{Name: "test", Events: events}}}); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) feedNames(t testing.TB) (names []string) {
	t.Helper()
	feed, err := s.Feed(t.Context(), 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range feed.Events {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
		names = append(names, e.Name)
	}
	return names
}

func TestEventsWithoutListenersLeaveNoPage(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustEnqueue(t, 3, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
	db.mustListen(t, store.EventProcessing)
	db.mustEnqueue(t, 3, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
	db.mustClaim(t, 2, "default")
	db.mustListen(t)
	db.mustClaim(t, 2, "default")
	if got := db.feedNames(t); len(got) != 2 {
		t.Errorf("the feed has %v", got)
	}
}

func TestALongPageIsDividedAndNoNumberIsLeftOut(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustListen(t, "*")
	db.mustEnqueue(t, 2*maxPageEvents+5, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
	db.mustPause(t, store.Hold{Queue: "default"})
	if got := db.feedNames(t); len(got) != 2*maxPageEvents+6 || got[len(got)-1] != "paused" {
		t.Errorf("the feed has %d events", len(got))
	}
}

func TestARefusedCallEmitsNoEventsBesideOthers(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustListen(t, "*")
	id := holdfast.NewID()
	if err := db.enqueueOne(id); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	errs := db.inOneGroup(t,
		func() error { return db.enqueueOne(holdfast.NewID()) },
		func() error {
			return db.writer.write(context.Background(), func(x *tx) error {
				x.emit(store.EventComplete, &id, 1)
				return errors.Join(x.setListener(&store.Listener{Name: "test"}), refused)
			})
		},
		func() error { return db.enqueueOne(holdfast.NewID()) })
	if errs[0] != nil || !errors.Is(errs[1], refused) || errs[2] != nil {
		t.Fatal(errs)
	}
	if got := db.feedNames(t); len(got) != 3 {
		t.Errorf("the feed has %v", got)
	}
}
