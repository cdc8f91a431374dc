package storetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// counter is a store that implements only Promote and Await; it counts the calls that reach it.
type counter struct {
	store.Store
	reached int
}

func (c *counter) Promote(context.Context, int) (int, error) {
	c.reached++
	return 7, nil
}

func promoteTimes(t *testing.T, f *Faulty, n int) (failed []int) {
	t.Helper()
	for i := range n {
		answer, err := f.Promote(context.Background(), 1)
		switch {
		case err != nil && (answer != 0 || !errors.Is(err, holdfast.ErrUnavailable)):
			t.Fatalf("a failed call answered %d, %v", answer, err)
		case err != nil:
			failed = append(failed, i+1)
		}
	}
	return failed
}

func TestAFaultStrikesTheCallItNames(t *testing.T) {
	for _, c := range []struct {
		name    string
		fault   Fault
		failed  []int
		reached int
	}{
		{"before, once", Fault{N: 2}, []int{2}, 3},
		{"after, once", Fault{N: 2, After: true}, []int{2}, 4},
		{"before, from then on", Fault{N: 3, Always: true}, []int{3, 4}, 2},
		{"after, from the first on", Fault{After: true, Always: true}, []int{1, 2, 3, 4}, 4},
		{"of its own verb", Fault{Verb: "Promote", N: 4}, []int{4}, 3},
		{"of another verb", Fault{Verb: "Claim"}, nil, 4},
		{"beyond the last call", Fault{N: 5}, nil, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := &counter{}
			f := NewFaulty(db, c.fault)
			same(t, "failed calls", promoteTimes(t, f, 4), c.failed)
			same(t, "calls that reached the store", db.reached, c.reached)
			same(t, "faults fired", f.Fired(), len(c.failed))
			same(t, "calls", []int{f.Calls(""), f.Calls("Promote"), f.Calls("Claim")}, []int{4, 4, 0})
		})
	}
}

func TestANewPlanHealsTheStoreAndCountsAfresh(t *testing.T) {
	f := NewFaulty(&counter{}, Fault{Always: true})
	same(t, "failed", promoteTimes(t, f, 2), []int{1, 2})
	f.Plan()
	same(t, "failed", promoteTimes(t, f, 2), []int{})
	f.Plan(Fault{N: 2, Err: holdfast.ErrUnavailable})
	same(t, "failed", promoteTimes(t, f, 2), []int{2})
}

func TestEveryCallCrossesTwoBoundaries(t *testing.T) {
	f := NewFaulty(&counter{})
	var crossed []Boundary
	f.Crash = func(b Boundary) { crossed = append(crossed, b) }
	promoteTimes(t, f, 2)
	same(t, "boundaries", crossed, []Boundary{{"Promote", 1, false}, {"Promote", 1, true}, {"Promote", 2, false}, {"Promote", 2, true}})
}

// questions are the read methods of roles that act.
var questions = []string{"Group", "GroupGraph", "Groups", "Tombstones", "PurgeCounts"}

// Every method that changes a store, or that others act upon, must fail on demand: otherwise its failure is never tested.
func TestEveryVerbOfARoleThatActsCanFail(t *testing.T) {
	f := NewFaulty(nil, Fault{Always: true}, Fault{Verb: "Await", Always: true})
	for _, role := range []reflect.Type{
		reflect.TypeFor[holdfast.Enqueuer](), reflect.TypeFor[store.Claimer](), reflect.TypeFor[store.Maintainer](), reflect.TypeFor[store.Operator](),
		reflect.TypeFor[store.Grouper](), reflect.TypeFor[store.Archiver](),
	} {
		for i := range role.NumMethod() {
			name := role.Method(i).Name
			if slices.Contains(questions, name) {
				continue
			}
			if err := failing(f, name); !errors.Is(err, holdfast.ErrUnavailable) || f.Calls(name) != 1 {
				t.Errorf("%s should fail and returned %v", name, err)
			}
		}
	}
}

// failing calls a method of a store with zero values.
func failing(f *Faulty, name string) error {
	verb := reflect.ValueOf(f).MethodByName(name)
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	for k := 1; k < verb.Type().NumIn(); k++ {
		args = append(args, reflect.Zero(verb.Type().In(k)))
	}
	answers := verb.Call(args)
	err, _ := answers[len(answers)-1].Interface().(error)
	return err
}
