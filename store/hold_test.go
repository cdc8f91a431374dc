package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestAHoldIsRefusedWithEveryProblemAtOnce(t *testing.T) {
	rate := func(perSecond, burst, level float64) *store.Rate {
		return &store.Rate{PerSecond: perSecond, Burst: burst, Level: level}
	}
	for name, c := range map[string]struct {
		hold     store.Hold
		mentions []string
	}{
		"nothing named":           {store.Hold{Actor: "ann"}, []string{"exactly one"}},
		"two named":               {store.Hold{Queue: "a", Kind: "b", Actor: "ann"}, []string{"exactly one"}},
		"a bad name":              {store.Hold{Queue: "a b", Actor: "ann"}, []string{"queue"}},
		"a control character":     {store.Hold{Owner: "a\nb", Actor: "ann"}, []string{"owner"}},
		"no actor":                {store.Hold{Queue: "a"}, []string{"actor"}},
		"a negative limit":        {store.Hold{Queue: "a", AtMost: -1, Actor: "ann"}, []string{"at most"}},
		"a hundred and one years": {store.Hold{Queue: "a", For: 101 * 365 * 24 * time.Hour, Actor: "ann"}, []string{"100 years"}},
		"a rate without burst":    {store.Hold{Queue: "a", Rate: rate(1, 0, 0), Actor: "ann"}, []string{"burst"}},
		"a level above burst":     {store.Hold{Queue: "a", Rate: rate(1, 2, 3), Actor: "ann"}, []string{"burst"}},
		"a rate for a pattern":    {store.Hold{Queue: "a*", Rate: rate(1, 2, 0), Actor: "ann"}, []string{"pattern"}},
		"a limit on a tag":        {store.Hold{Tag: "vip", AtMost: 1, Actor: "ann"}, []string{"tag"}},
		"three problems at once":  {store.Hold{Queue: "a b", AtMost: -1}, []string{"queue", "at most", "actor"}},
	} {
		err := c.hold.Check()
		if !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, word := range c.mentions {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not mention %q", name, err, word)
			}
		}
	}
}

func TestTheDefaultSourceOfAHoldIsTheOperator(t *testing.T) {
	for _, h := range []store.Hold{
		{Queue: "mail", Actor: "ann"}, {Kind: "send", Actor: "ann", For: time.Hour}, {Owner: "Ann & Co *", Actor: "ann"}, {Dependency: "printer-*", AtMost: 1, Actor: "ann"},
		{Owner: "*", AtMost: 2, Actor: "ann"}, {Tag: "vip", Actor: "ann"}, {Dependency: "gw", Rate: &store.Rate{PerSecond: .05, Burst: 3, Level: 3}, Retries: true, Actor: "ann"},
	} {
		if err := h.Check(); err != nil || h.Source != store.SourceOperator {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

func TestATriageIsRefusedWithEveryProblemAtOnce(t *testing.T) {
	bad := store.Triage{Status: "gone", For: -1, Version: "v2"}
	err := bad.Check()
	for _, word := range []string{"status", "fingerprint", "ignored", "resolved", "actor"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not mention %q", err, word)
		}
	}
	good := store.Triage{Fingerprint: "f", Status: store.StatusIgnored, Count: 5, Actor: "ann"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func TestOnReturnsTheScopeAndNameThatUponSet(t *testing.T) {
	for _, scope := range []string{"queue", "kind", "owner", "dependency", "tag"} {
		h := store.Hold{}.WithScope(scope, "x")
		if of, name := h.Scope(); of != scope || name != "x" {
			t.Errorf("a hold on %s x is on %s %s", scope, of, name)
		}
	}
}
