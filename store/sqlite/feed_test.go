package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfastdev/holdfast"
)

func (s *Store) mustListen(t testing.TB, events ...string) {
	t.Helper()
	if err := s.Keep(t.Context(), holdfast.Change{Listen: []holdfast.Listener{{Name: "test", Events: events}}}); err != nil {
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
	store, _, _ := openCounted(t)
	store.mustEnqueue(t, 3, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
	store.mustListen(t, holdfast.EventProcessing)
	store.mustEnqueue(t, 3, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
	store.mustClaim(t, 2, "default")
	store.mustListen(t)
	store.mustClaim(t, 2, "default")
	if got := store.feedNames(t); len(got) != 2 {
		t.Errorf("the feed has %v", got)
	}
}

func TestALongPageIsDividedAndNoNumberIsLeftOut(t *testing.T) {
	store, _, _ := openCounted(t)
	store.mustListen(t, "*")
	store.mustEnqueue(t, 2*maxPageEvents+5, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
	store.mustPause(t, holdfast.Hold{Queue: "default"})
	if got := store.feedNames(t); len(got) != 2*maxPageEvents+6 || got[len(got)-1] != "paused" {
		t.Errorf("the feed has %d events", len(got))
	}
}

func TestARefusedCallEmitsNoEventsBesideOthers(t *testing.T) {
	store, _, _ := openCounted(t)
	store.mustListen(t, "*")
	id := holdfast.NewID()
	if err := store.enqueueOne(id); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	errs := store.inOneGroup(t,
		func() error { return store.enqueueOne(holdfast.NewID()) },
		func() error {
			return store.writer.write(context.Background(), func(x *tx) error {
				x.emit(holdfast.EventComplete, &id, 1)
				return errors.Join(x.setListener(&holdfast.Listener{Name: "test"}), refused)
			})
		},
		func() error { return store.enqueueOne(holdfast.NewID()) })
	if errs[0] != nil || !errors.Is(errs[1], refused) || errs[2] != nil {
		t.Fatal(errs)
	}
	if got := store.feedNames(t); len(got) != 3 {
		t.Errorf("the feed has %v", got)
	}
}
