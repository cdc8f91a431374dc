package sqlite

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// viewOf returns a view that has found the lines of these lanes.
func viewOf(t *testing.T, lanes ...*lane.Lane) *claimView {
	t.Helper()
	scope, err := lane.NewScope(store.Claim{Queues: []string{"default"}})
	if err != nil {
		t.Fatal(err)
	}
	v := &claimView{scope: scope}
	for _, l := range lanes {
		v.lines = append(v.lines, line{l.ID, l})
	}
	return v
}

func TestRememberedLinesAreUsedOnlyUnderTheSameHoldsAndNotByTheWriter(t *testing.T) {
	limit := holdRow{scope: "kind", name: "mail", rated: true, perSecond: 1, burst: 9, level: 9}
	found := viewOf(t, &lane.Lane{ID: 1, Owner: "acme"})
	found.holds = []holdRow{limit}
	var m lineMemory
	kept := m.keep(found, time.Now())
	spent := limit
	spent.level, spent.levelAt = 3, 77
	for name, c := range map[string]struct {
		change func(*claimView)
		want   *openLines
	}{
		"the same":                {func(*claimView) {}, kept},
		"tokens were spent":       {func(v *claimView) { v.holds = []holdRow{spent} }, kept},
		"the limit was lifted":    {func(v *claimView) { v.holds = nil }, nil},
		"a kind has a dependency": {func(v *claimView) { v.kinds = map[string]string{"mail": "smtp"} }, nil},
		"another scope":           {func(v *claimView) { v.scope = &lane.Scope{Queues: []string{"other"}} }, nil},
		"on the writer":           {func(v *claimView) { v.onWriter = true }, nil},
	} {
		v := viewOf(t)
		v.holds = []holdRow{limit}
		if c.change(v); m.recall(v) != c.want {
			t.Errorf("%s: recalled %v", name, m.recall(v))
		}
	}
	kept.until = time.Now()
	if m.recall(found) != nil {
		t.Error("old lines are used")
	}
}

func TestOnlyAJobMoreUrgentThanAllThatIsRememberedMakesTheMemoryOutdated(t *testing.T) {
	v := viewOf(t, &lane.Lane{ID: 1, Owner: "acme"})
	var m lineMemory
	m.noteEnqueued([]holdfast.Draft{{Priority: -9}}) // nothing is remembered yet
	open := m.keep(v, time.Now())
	open.heads = &headHeap{{line: v.lines[0], priority: 5}}
	m.publishUrgent()
	for _, c := range []struct {
		priority int16
		kept     bool
	}{{5, true}, {6, true}, {4, false}} {
		m.noteEnqueued([]holdfast.Draft{{Priority: 7}, {Priority: c.priority}})
		if m.dropOutdated(); (m.recall(v) != nil) != c.kept {
			t.Errorf("after a job of priority %d the lines are remembered: %v", c.priority, !c.kept)
		}
	}
}

func TestOneSearchIn64ExpectsFewLines(t *testing.T) {
	m := lineMemory{nonEmpty: 1000}
	for n := 1; n <= 128; n++ {
		got := m.expectLines()
		if want := n%64 != 0; (got == 1000) != want {
			t.Errorf("search %d expects %d lines", n, got)
		}
		m.nonEmpty = 1000
	}
}

func TestEmptiedLinesAreForgottenWithTheirOwner(t *testing.T) {
	acme, also, zeta := &lane.Lane{ID: 1, Owner: "acme"}, &lane.Lane{ID: 2, Owner: "acme"}, &lane.Lane{ID: 3, Owner: "zeta"}
	open := newOpenLines(viewOf(t, acme, also, zeta), time.Now())
	open.dropEmpty(map[int64]bool{1: true, 3: true}, open.owners)
	if !slices.Equal(open.owners, []string{"acme"}) || len(open.lines) != 1 || len(open.byOwner["acme"]) != 1 || open.byOwner["zeta"] != nil {
		t.Errorf("owners %v, lines %v", open.owners, open.lines)
	}
}
