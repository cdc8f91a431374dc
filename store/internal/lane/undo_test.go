package lane

import (
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
)

// beginning returns the head of an owner's line with one priority.
func beginning(owner string, id int64, priority int16, jobs int) Head {
	h := Head{Share: Share{Lane: &Lane{ID: id, Queue: "default", Kind: "mail", Owner: owner}, Line: id, Priority: &priority}, More: true}
	for range jobs {
		h.Keys = append(h.Keys, Key{priority, holdfast.NewID()})
	}
	return h
}

func TestAnUndonePickIsNotCounted(t *testing.T) {
	turns, valves, one := &Turns{}, NewValves(nil, time.Now()), Order{Jobs: 1}
	heads := []Head{beginning("a", 1, 0, 9), beginning("b", 2, 0, 9)}
	taken := map[string]int{}
	for range 8 {
		for undone := range 3 {
			shares, _ := turns.Pick(heads, valves, one)
			if undone < 2 {
				turns.Undo()
				continue
			}
			taken[shares[0].Lane.Owner]++
		}
	}
	if taken["a"] != 4 || taken["b"] != 4 {
		t.Errorf("two owners who take turns got %v", taken)
	}
	turns.Undo()
	turns.Undo()
	if shares, _ := turns.Pick(heads, valves, one); shares[0].Lane.Owner != "b" {
		t.Error("a second undo took back an older pick")
	}
}

func TestSharesThatWereNotTakenAreNotCounted(t *testing.T) {
	turns, valves, order := &Turns{}, NewValves(nil, time.Now()), Order{Jobs: 4, Weights: map[string]float64{"a": 2}}
	alone := []Head{beginning("a", 1, 0, 9)}
	for range 3 {
		shares, _ := turns.Pick(alone, valves, order)
		turns.Return(shares, order.Weights)
	}
	taken := map[string]int{}
	for range 3 {
		shares, _ := turns.Pick([]Head{beginning("a", 1, 0, 9), beginning("b", 2, 0, 9)}, valves, order)
		for _, share := range shares {
			taken[share.Lane.Owner] += share.Jobs
		}
	}
	if taken["a"] != 8 || taken["b"] != 4 {
		t.Errorf("an owner of weight two and one of weight one got %v", taken)
	}
}

func TestEveryPriorityComesToItsTurnInEvenPicksOfOne(t *testing.T) {
	turns, valves := &Turns{}, NewValves(nil, time.Now())
	heads := []Head{beginning("a", 1, -5, 9), beginning("a", 1, 0, 9), beginning("a", 1, 5, 9)}
	taken := map[int16]int{}
	for range 6 {
		shares, _ := turns.Pick(heads, valves, Order{Jobs: 1, Even: true})
		taken[*shares[0].Priority]++
	}
	if taken[-5] != 2 || taken[0] != 2 || taken[5] != 2 {
		t.Errorf("three priorities were served %v times", taken)
	}
}

func TestTheGuardIsOneClaimInSixteenAndNotAlwaysTheSameOwners(t *testing.T) {
	turns := &Turns{}
	guards, parities := 0, [2]int{}
	for i := range 160 {
		if turns.Guard() {
			guards++
			parities[i%2]++
		}
		if first := i == 15; first && guards != 1 {
			t.Errorf("%d guards among the first sixteen", guards)
		}
	}
	if guards != 10 || parities[0] == 0 || parities[1] == 0 {
		t.Errorf("%d guards among 160, at even and odd places %v", guards, parities)
	}
}
