package lane

import (
	"maps"
	"testing"
)

func TestWeightsAreUsedForASecondAndNotAfterTheyExpired(t *testing.T) {
	var w Weights
	_, version, fresh := w.Cached(noon)
	if fresh {
		t.Error("weights that were never read are used")
	}
	w.Set(map[string]float64{"acme": 3}, version, noon)
	if of, _, fresh := w.Cached(noon.Add(weightAge - 1)); !fresh || of["acme"] != 3 {
		t.Errorf("weights that were just read: %v, %v", of, fresh)
	}
	if _, _, fresh := w.Cached(noon.Add(weightAge)); fresh {
		t.Error("old weights are used")
	}
	w.Expire()
	if _, _, fresh := w.Cached(noon); fresh {
		t.Error("weights are used although one has changed")
	}
}

func TestWeightsThatExpireWhileTheyAreReadAreNotStored(t *testing.T) {
	var w Weights
	_, version, _ := w.Cached(noon)
	w.Expire()
	w.Set(map[string]float64{"acme": 3}, version, noon)
	if _, _, fresh := w.Cached(noon); fresh {
		t.Error("weights that were read before the change are used after it")
	}
}

func TestOnlyAPositiveWeightCounts(t *testing.T) {
	weights := map[string]float64{}
	for owner, body := range map[string]string{"a": `{"weight":2.5}`, "b": `{"weight":0}`, "c": `{"weight":-1}`, "d": `{}`, "e": `three`, "f": `{"weight":"3"}`} {
		AddWeight(weights, owner, body)
	}
	if want := map[string]float64{"a": 2.5}; !maps.Equal(weights, want) {
		t.Errorf("%v, not %v", weights, want)
	}
	if WeightOf(weights, "a") != 2.5 || WeightOf(weights, "b") != 1 || WeightOf(nil, "a") != 1 {
		t.Error("an owner without a weight has weight 1")
	}
}
