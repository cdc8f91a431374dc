package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
)

type order struct{ Number int }

func (order) Kind() string { return "order" }

// drafts takes what is enqueued.
type drafts struct{ all []holdfast.Draft }

func (d *drafts) Enqueue(_ context.Context, more []holdfast.Draft) ([]holdfast.Receipt, error) {
	d.all = append(d.all, more...)
	receipts := make([]holdfast.Receipt, len(more))
	for i := range receipts {
		receipts[i].ID = holdfast.NewID()
	}
	return receipts, nil
}

func (d *drafts) CreateGroup(context.Context, holdfast.Group) (holdfast.Group, error) {
	return holdfast.Group{}, errors.New("not used")
}

func (d *drafts) SealGroup(context.Context, holdfast.ID) error { return errors.New("not used") }

func TestEnqueueAllMakesOneCallWithTheOptionsOnEveryDraft(t *testing.T) {
	var to drafts
	receipts, err := holdfast.EnqueueAll(t.Context(), &to, []order{{1}, {2}, {3}}, func(d *holdfast.Draft) { d.Queue = "shop" })
	if err != nil || len(receipts) != 3 || len(to.all) != 3 {
		t.Fatalf("%d receipts for %d drafts: %v", len(receipts), len(to.all), err)
	}
	for i, d := range to.all {
		if d.Kind != "order" || d.Queue != "shop" || string(d.Args) != []string{`{"Number":1}`, `{"Number":2}`, `{"Number":3}`}[i] {
			t.Errorf("draft %d: %+v", i, d)
		}
	}
}

// draftOf returns the draft that Enqueue makes.
func draftOf(t *testing.T, args holdfast.Args, options ...func(*holdfast.Draft)) holdfast.Draft {
	t.Helper()
	var to drafts
	if _, err := holdfast.Enqueue(t.Context(), &to, args, options...); err != nil {
		t.Fatal(err)
	}
	return to.all[0]
}

func TestUniqueArgsGivesEqualArgumentsAnEqualKey(t *testing.T) {
	one, same, other := draftOf(t, order{1}, holdfast.UniqueArgs), draftOf(t, order{1}, holdfast.UniqueArgs), draftOf(t, order{2}, holdfast.UniqueArgs)
	if one.UniqueKey == "" || one.UniqueKey != same.UniqueKey || one.UniqueKey == other.UniqueKey || one.UniqueDone {
		t.Errorf("keys %q, %q and %q", one.UniqueKey, same.UniqueKey, other.UniqueKey)
	}
}

func TestUniquePeriodGivesEqualArgumentsAnEqualKeyWithinThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock begins at midnight
		perHour := holdfast.UniquePeriod(time.Hour)
		one, other := draftOf(t, order{1}, perHour), draftOf(t, order{2}, perHour)
		time.Sleep(59 * time.Minute)
		late := draftOf(t, order{1}, perHour)
		time.Sleep(time.Minute)
		next := draftOf(t, order{1}, perHour)
		if one.UniqueKey != late.UniqueKey || one.UniqueKey == next.UniqueKey || one.UniqueKey == other.UniqueKey || !one.UniqueDone {
			t.Errorf("keys %q, %q, %q and %q", one.UniqueKey, late.UniqueKey, next.UniqueKey, other.UniqueKey)
		}
	})
}

func TestDebounceReplacesAndMovesTheStart(t *testing.T) {
	d := draftOf(t, order{1}, holdfast.UniqueArgs, holdfast.Debounce(time.Second, time.Minute))
	if d.Delay != time.Second || d.Replace == nil || *d.Replace != (holdfast.Replace{Start: true, MaxAge: time.Minute, Follow: true}) {
		t.Errorf("%+v", d)
	}
	if err := d.Prepare(); err != nil {
		t.Error(err)
	}
	d.UniqueKey = ""
	if err := d.Prepare(); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("without a key: %v", err)
	}
}

func TestAnIDIsAValueOfDatabaseSQL(t *testing.T) {
	id := holdfast.NewID()
	value, err := id.Value()
	if err != nil || value != id.String() {
		t.Fatalf("value %v: %v", value, err)
	}
	for _, stored := range []any{id.String(), []byte(id.String()), id[:], [16]byte(id)} {
		var back holdfast.ID
		if err := back.Scan(stored); err != nil || back != id {
			t.Errorf("%T: %v %v", stored, back, err)
		}
	}
	back := id
	if err := back.Scan(nil); err != nil || !back.IsZero() {
		t.Errorf("NULL: %v %v", back, err)
	}
	for _, bad := range []any{7, "no id", []byte{1, 2}} {
		if err := back.Scan(bad); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
