package soak

import "testing"

func TestTheVariableChoosesTheCount(t *testing.T) {
	for value, want := range map[string]int{"": 3, "1": 9} {
		t.Setenv(variable, value)
		if got := Pick("jobs", 3, 9); got != want {
			t.Errorf("%s=%s gives %d, want %d", variable, value, got, want)
		}
	}
}
