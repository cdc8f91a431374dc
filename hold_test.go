package holdfast_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
)

func TestAHoldIsRefusedWithEveryProblemAtOnce(t *testing.T) {
	rate := func(perSecond, burst, level float64) *holdfast.Rate {
		return &holdfast.Rate{PerSecond: perSecond, Burst: burst, Level: level}
	}
	for name, c := range map[string]struct {
		hold     holdfast.Hold
		mentions []string
	}{
		"nothing named":           {holdfast.Hold{Actor: "ann"}, []string{"exactly one"}},
		"two named":               {holdfast.Hold{Queue: "a", Kind: "b", Actor: "ann"}, []string{"exactly one"}},
		"a bad name":              {holdfast.Hold{Queue: "a b", Actor: "ann"}, []string{"queue"}},
		"a control character":     {holdfast.Hold{Owner: "a\nb", Actor: "ann"}, []string{"owner"}},
		"no actor":                {holdfast.Hold{Queue: "a"}, []string{"actor"}},
		"a negative limit":        {holdfast.Hold{Queue: "a", AtMost: -1, Actor: "ann"}, []string{"at most"}},
		"a hundred and one years": {holdfast.Hold{Queue: "a", For: 101 * 365 * 24 * time.Hour, Actor: "ann"}, []string{"100 years"}},
		"a rate without burst":    {holdfast.Hold{Queue: "a", Rate: rate(1, 0, 0), Actor: "ann"}, []string{"burst"}},
		"a level above burst":     {holdfast.Hold{Queue: "a", Rate: rate(1, 2, 3), Actor: "ann"}, []string{"burst"}},
		"a rate for a pattern":    {holdfast.Hold{Queue: "a*", Rate: rate(1, 2, 0), Actor: "ann"}, []string{"pattern"}},
		"a limit on a tag":        {holdfast.Hold{Tag: "vip", AtMost: 1, Actor: "ann"}, []string{"tag"}},
		"three problems at once":  {holdfast.Hold{Queue: "a b", AtMost: -1}, []string{"queue", "at most", "actor"}},
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
	for _, h := range []holdfast.Hold{
		{Queue: "mail", Actor: "ann"}, {Kind: "send", Actor: "ann", For: time.Hour}, {Owner: "Ann & Co *", Actor: "ann"}, {Dependency: "printer-*", AtMost: 1, Actor: "ann"},
		{Owner: "*", AtMost: 2, Actor: "ann"}, {Tag: "vip", Actor: "ann"}, {Dependency: "gw", Rate: &holdfast.Rate{PerSecond: .05, Burst: 3, Level: 3}, Retries: true, Actor: "ann"},
	} {
		if err := h.Check(); err != nil || h.Source != holdfast.SourceOperator {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

func TestATriageIsRefusedWithEveryProblemAtOnce(t *testing.T) {
	bad := holdfast.Triage{Status: "gone", For: -1, Version: "v2"}
	err := bad.Check()
	for _, word := range []string{"status", "fingerprint", "ignored", "resolved", "actor"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not mention %q", err, word)
		}
	}
	good := holdfast.Triage{Fingerprint: "f", Status: holdfast.Ignored, Count: 5, Actor: "ann"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func TestOnReturnsTheScopeAndNameThatUponSet(t *testing.T) {
	for _, scope := range []string{"queue", "kind", "owner", "dependency", "tag"} {
		h := holdfast.Hold{}.Upon(scope, "x")
		if of, name := h.On(); of != scope || name != "x" {
			t.Errorf("a hold on %s x is on %s %s", scope, of, name)
		}
	}
}
