package events

import (
	"errors"
	"testing"
)

func TestAnOwnerAndAnAddressHaveAShareOfTheStreams(t *testing.T) {
	s := &Streams{Config: Config{TooMany: errors.New("too many")}}
	join := func(owner, remote string) func() {
		t.Helper()
		release, err := s.admit(owner, remote)
		if err != nil {
			t.Fatalf("%s from %s: %v", owner, remote, err)
		}
		return release
	}
	last := func() {}
	for range maxShare {
		last = join("a", "192.0.2.1:1")
	}
	for _, refused := range [][2]string{{"a", "192.0.2.2:1"}, {"b", "192.0.2.1:2"}} {
		if _, err := s.admit(refused[0], refused[1]); err != s.TooMany {
			t.Errorf("%v: %v", refused, err)
		}
	}
	join("b", "192.0.2.2:1")
	last()
	join("a", "192.0.2.1:1")
}
