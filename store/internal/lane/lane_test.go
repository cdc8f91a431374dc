package lane

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// head returns the head of a line with n jobs, oldest first.
func head(l *Lane, retries bool, n int) Head {
	h := Head{Share: Share{Lane: l, Line: l.ID}}
	if retries {
		h.Line = -l.ID
	}
	for i := range n {
		h.Keys = append(h.Keys, Key{Job: holdfast.ID{byte(l.ID), byte(i >> 8), byte(i)}})
	}
	return h
}

func TestAHoldClosesWhatItNamesAndNothingElse(t *testing.T) {
	l := &Lane{ID: 1, Queue: "mail", Kind: "send", Owner: "acme", Dependency: "smtp"}
	for _, c := range []struct {
		hold           store.Hold
		first, retries bool
	}{
		{store.Hold{Queue: "mail"}, false, false},
		{store.Hold{Queue: "mai"}, true, true},
		{store.Hold{Queue: "ma*"}, false, false},
		{store.Hold{Kind: "send"}, false, false},
		{store.Hold{Owner: "acme"}, false, false},
		{store.Hold{Owner: "*"}, false, false},
		{store.Hold{Dependency: "smtp", Retries: true}, true, false},
		{store.Hold{Dependency: "smtp", Until: noon}, true, true},
		{store.Hold{Dependency: "smtp", Until: noon.Add(1)}, false, false},
		{store.Hold{Dependency: "smtp", AtMost: 1}, true, true},
	} {
		v := NewValves([]store.Hold{c.hold}, noon)
		if first, retries := v.Open(l, false), v.Open(l, true); first != c.first || retries != c.retries {
			t.Errorf("%+v: first attempts open %v, retries open %v", c.hold, first, retries)
		}
	}
	nobody := NewValves([]store.Hold{{Owner: "*"}}, noon)
	if !nobody.Open(&Lane{ID: 2, Queue: "mail", Kind: "send"}, false) {
		t.Error("a hold on every owner holds the jobs of no owner")
	}
}

func TestALimitCountsProcessingJobs(t *testing.T) {
	a, b := &Lane{ID: 1, Queue: "q", Kind: "k", Dependency: "gw"}, &Lane{ID: 2, Queue: "q", Kind: "other", Dependency: "gw"}
	v := NewValves([]store.Hold{{Dependency: "gw", AtMost: 5}}, noon)
	v.Live(a, false, 2)
	v.Live(b, true, 1)
	shares, _ := new(Turns).Pick([]Head{head(a, false, 10), head(b, false, 10)}, v, Order{Jobs: 10})
	if Total(shares) != 2 {
		t.Errorf("3 of 5 were in hand and %d more were taken", Total(shares))
	}
}

func TestAPatternLimitsEachNameByItself(t *testing.T) {
	a, b := &Lane{ID: 1, Owner: "a"}, &Lane{ID: 2, Owner: "b"}
	v := NewValves([]store.Hold{{Owner: "*", AtMost: 2}}, noon)
	v.Live(a, false, 1)
	shares, _ := new(Turns).Pick([]Head{head(a, false, 10), head(b, false, 10)}, v, Order{Jobs: 10})
	if len(shares) != 2 || shares[0].Jobs != 1 || shares[1].Jobs != 2 {
		t.Errorf("got %+v", shares)
	}
}

func TestABucketGivesItsTokensAndNoMore(t *testing.T) {
	l := &Lane{ID: 1, Dependency: "gw"}
	hold := store.Hold{Dependency: "gw", Rate: &store.Rate{PerSecond: 1, Burst: 5, Level: 2.9}}
	v := NewValves([]store.Hold{hold}, noon)
	shares, _ := new(Turns).Pick([]Head{head(l, false, 10)}, v, Order{Jobs: 10})
	if Total(shares) != 2 {
		t.Errorf("%d were taken from a bucket of 2.9", Total(shares))
	}
	if spent := v.Spend(shares); len(spent) != 1 || spent[0].Tokens != -2 {
		t.Errorf("spent %+v", spent)
	}
	if got := Level(*hold.Rate, 10*time.Second); got != 5 {
		t.Errorf("a bucket of burst 5 holds %v after ten seconds", got)
	}
}

func TestTheJobsOfOneOwnerKeepTheirOrderAcrossLines(t *testing.T) {
	a, b := &Lane{ID: 1, Kind: "a"}, &Lane{ID: 2, Kind: "b"}
	ha, hb := head(a, false, 3), head(b, true, 3)
	for i := range ha.Keys {
		ha.Keys[i], hb.Keys[i] = Key{Job: holdfast.ID{byte(2 * i)}}, Key{Job: holdfast.ID{byte(2*i + 1)}}
	}
	shares, _ := new(Turns).Pick([]Head{ha, hb}, NewValves(nil, noon), Order{Jobs: 3})
	if len(shares) != 2 || shares[0].Jobs != 2 || shares[1].Jobs != 1 {
		t.Errorf("the first three of six that take turns: got %+v", shares)
	}
}

func TestAnOwnerWaitsForADeeperLookRatherThanBreakItsOrder(t *testing.T) {
	a, b := &Lane{ID: 1, Kind: "a"}, &Lane{ID: 2, Kind: "b"}
	short := head(a, false, 1)
	short.More = true
	shares, deeper := new(Turns).Pick([]Head{short, head(b, false, 5)}, NewValves(nil, noon), Order{Jobs: 4})
	if Total(shares) != 1 || !deeper {
		t.Errorf("what lies behind the first of lane a may come before lane b: took %d, deeper %v", Total(shares), deeper)
	}
}

func TestPrioritiesTakeTurnsWhenSharingEvenly(t *testing.T) {
	l := &Lane{ID: 1}
	urgent, idle := head(l, false, 20), head(l, false, 20)
	for i := range idle.Keys {
		idle.Keys[i].Priority = 9
	}
	shares, _ := new(Turns).Pick([]Head{urgent, idle}, NewValves(nil, noon), Order{Jobs: 10, Even: true})
	if len(shares) != 2 || shares[0].Jobs != 5 || shares[1].Jobs != 5 {
		t.Errorf("got %+v", shares)
	}
}

func TestOwnersShareByWeightOverManyClaims(t *testing.T) {
	for _, jobs := range []int{1, 3, 10} {
		turns, got := &Turns{}, map[string]int{}
		for range 400 / jobs {
			heads := []Head{head(&Lane{ID: 1, Owner: "big"}, false, 50), head(&Lane{ID: 2, Owner: "small"}, false, 50)}
			shares, _ := turns.Pick(heads, NewValves(nil, noon), Order{Jobs: jobs, Weights: map[string]float64{"big": 3}})
			for _, s := range shares {
				got[s.Lane.Owner] += s.Jobs
			}
		}
		if share := float64(got["big"]) / float64(got["small"]); share < 2.7 || share > 3.3 {
			t.Errorf("claims of %d: weights 3 to 1 shared %d to %d", jobs, got["big"], got["small"])
		}
	}
}

func TestAnOwnerThatReturnsDoesNotCatchUpOnWhatItMissed(t *testing.T) {
	turns, a, b := &Turns{}, &Lane{ID: 1, Owner: "a"}, &Lane{ID: 2, Owner: "b"}
	for range 100 {
		turns.Pick([]Head{head(a, false, 10)}, NewValves(nil, noon), Order{Jobs: 10})
	}
	shares, _ := turns.Pick([]Head{head(a, false, 10), head(b, false, 10)}, NewValves(nil, noon), Order{Jobs: 10})
	if len(shares) != 2 || shares[0].Jobs < 4 {
		t.Errorf("an owner that was away took the whole claim: %+v", shares)
	}
}

func TestEveryOwnerOfManyGetsATurn(t *testing.T) {
	const owners, jobs = 500, 5
	turns, served := &Turns{}, map[string]bool{}
	lanes, names := map[string]*Lane{}, []string{}
	for i := range owners {
		name := fmt.Sprint("o", i)
		names, lanes[name] = append(names, name), &Lane{ID: int64(i + 1), Owner: name}
	}
	for range owners/jobs + 2 {
		turn, depth := turns.Next(names, jobs)
		var heads []Head
		for _, name := range names {
			if turn[name] {
				heads = append(heads, head(lanes[name], false, depth))
			}
		}
		shares, _ := turns.Pick(heads, NewValves(nil, noon), Order{Jobs: jobs})
		for _, s := range shares {
			served[s.Lane.Owner] = true
		}
	}
	if len(served) != owners {
		t.Errorf("%d of %d owners were served in %d claims of %d", len(served), owners, owners/jobs+2, jobs)
	}
}

// Whatever the holds and the backlog: nothing closed is taken, no limit is exceeded, the division is fair, and no job
// is left that could be taken.
func TestAPickIsFairAndWithinEveryCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, jobs := rapid.IntRange(1, 6).Draw(t, "limit"), rapid.IntRange(1, 20).Draw(t, "jobs")
		var heads []Head
		waiting := map[string]int{}
		for i, owner := range []string{"a", "b", "c"} {
			n := rapid.IntRange(0, 12).Draw(t, owner)
			heads = append(heads, head(&Lane{ID: int64(i + 1), Owner: owner, Dependency: "gw"}, false, n))
			waiting[owner] = n
		}
		live := rapid.IntRange(0, 4).Draw(t, "live")
		v := NewValves([]store.Hold{{Dependency: "gw", AtMost: limit}}, noon)
		v.Live(heads[0].Lane, false, live)
		shares, _ := new(Turns).Pick(heads, v, Order{Jobs: jobs})
		got, all := map[string]int{}, 0
		for _, s := range shares {
			got[s.Lane.Owner] = s.Jobs
		}
		for _, n := range waiting {
			all += n
		}
		if want := min(jobs, all, max(0, limit-live)); Total(shares) != want {
			t.Fatalf("took %d of %d, want %d", Total(shares), all, want)
		}
		for a := range waiting {
			for b := range waiting {
				if got[a] < waiting[a] && got[b] > got[a]+1 {
					t.Fatalf("%s got %d and could have had more, %s got %d", a, got[a], b, got[b])
				}
			}
		}
	})
}

func TestAnOwnerWhoseHeadIsUsedUpDoesNotLoseItsShareToOthers(t *testing.T) {
	short := head(&Lane{ID: 1, Owner: "a"}, false, 1)
	short.More = true
	if _, deeper := new(Turns).Pick([]Head{short, head(&Lane{ID: 2, Owner: "b"}, false, 10)}, NewValves(nil, noon), Order{Jobs: 4}); !deeper {
		t.Error("owner a had more than could be seen, and b was given its turns")
	}
}

func TestAKindsDependencyCountsForJobsThatNameNone(t *testing.T) {
	declared := map[string]string{"send": "smtp"}
	for _, c := range []struct{ own, kind, want string }{{"", "send", "smtp"}, {"relay", "send", "relay"}, {"", "scan", ""}} {
		if got := Dependency(c.own, c.kind, declared); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if got := Dependency("", "send", nil); got != "" {
		t.Errorf("nothing is declared, and the dependency is %q", got)
	}
}

func TestValvesAreSelectiveIfATagIsHeldOrALineIsLimited(t *testing.T) {
	line := &Lane{ID: 1, Queue: "mail", Kind: "send", Owner: "acme"}
	anyLine := func(such func(*Lane, bool) bool) bool { return such(line, false) }
	for _, c := range []struct {
		hold store.Hold
		want bool
	}{
		{store.Hold{Tag: "red"}, true},
		{store.Hold{Kind: "send", AtMost: 3}, true},
		{store.Hold{Kind: "send", Rate: &store.Rate{PerSecond: 1, Burst: 1}}, true},
		{store.Hold{Kind: "scan", AtMost: 3}, false},
		{store.Hold{Kind: "send", AtMost: 3, Retries: true}, false},
		{store.Hold{Kind: "send"}, false}, // closes the line, so no job of it is left to select from
	} {
		if got := NewValves([]store.Hold{c.hold}, noon).Selective(anyLine); got != c.want {
			t.Errorf("%+v: %v", c.hold, got)
		}
	}
	bounded := NewValves(nil, noon)
	if bounded.Bound(2, nil); !bounded.Selective(anyLine) {
		t.Error("a claim with slots for each owner takes them in turns")
	}
	NewValves(nil, noon).Selective(func(func(*Lane, bool) bool) bool {
		t.Error("lines are visited although nothing limits them")
		return false
	})
}
