package duty

import (
	"encoding/json"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func fold(orders map[string]Control, reports ...Reports) map[string]Status {
	all := make(map[string]Status)
	for _, s := range Statuses(orders, reports, noon) {
		all[s.Name] = s
	}
	return all
}

func TestADutyIsLateOnlyWhenItIsLateEverywhere(t *testing.T) {
	late := Reports{Worker: "a", At: noon, Duties: map[string]Report{"promote": {Next: noon.Add(-time.Minute), Last: noon.Add(-2 * time.Minute)}}}
	good := Reports{Worker: "b", At: noon, Duties: map[string]Report{"promote": {Next: noon.Add(time.Second), Last: noon, Took: time.Millisecond}}}
	if s := fold(nil, late)["promote"]; s.Lag != time.Minute || s.Workers != 1 {
		t.Errorf("alone: %+v", s)
	}
	s := fold(nil, late, good)["promote"]
	if s.Lag != 0 || s.Workers != 2 || !s.Last.Equal(noon) || s.Took != time.Millisecond || !s.Next.Equal(noon.Add(-time.Minute)) {
		t.Errorf("together: %+v", s)
	}
}

func TestTheLagOfACurrentReportIsAsOfItsTimeAndOfAnOldOneAsOfNow(t *testing.T) {
	of := func(ago time.Duration) Reports {
		at := noon.Add(-ago)
		return Reports{Worker: "a", At: at, Duties: map[string]Report{"sequence": {Last: at, Next: at.Add(100 * time.Millisecond)}}}
	}
	if s := fold(nil, of(5*time.Second))["sequence"]; s.Lag != 0 {
		t.Errorf("reported five seconds ago: a lag of %v", s.Lag)
	}
	if s := fold(nil, of(time.Minute))["sequence"]; s.Lag < 59*time.Second {
		t.Errorf("last reported a minute ago: a lag of %v", s.Lag)
	}
}

func TestAPausedDutyHasNoLagAndAPauseThatIsOverIsNone(t *testing.T) {
	report := Reports{Worker: "a", At: noon, Duties: map[string]Report{"retention": {Next: noon.Add(-time.Hour)}}}
	order := Control{Paused: true, Until: noon.Add(time.Minute), Actor: "ada", Reason: "backup", Run: 3}
	s := fold(map[string]Control{"retention": order}, report)["retention"]
	if !s.Paused || s.Lag != 0 || s.Actor != "ada" || s.Reason != "backup" || !s.Until.Equal(order.Until) {
		t.Errorf("paused: %+v", s)
	}
	order.Until = noon
	if s := fold(map[string]Control{"retention": order}, report)["retention"]; s.Paused || s.Lag != time.Hour || s.Actor != "" {
		t.Errorf("over: %+v", s)
	}
	if !order.Over(noon) || order.Resumed() != (Control{Run: 3}) {
		t.Errorf("resumed: %+v", order.Resumed())
	}
	if o := (Control{Paused: true}); o.Over(noon) || !o.Halts(noon) {
		t.Error("a pause without an end has ended")
	}
}

func TestWhatCannotBePausedIsNotShownAsPaused(t *testing.T) {
	if s := fold(map[string]Control{"claim": {Paused: true}})["claim"]; s.Paused || Pausable("claim") || !Pausable("probes") || !Pausable("of an application") {
		t.Errorf("%+v", s)
	}
}

func TestTheLastErrorOfAnyProcessIsShown(t *testing.T) {
	one := Reports{At: noon, Duties: map[string]Report{"artifacts": {Error: "old", ErrorAt: noon.Add(-time.Hour)}}}
	two := Reports{At: noon, Duties: map[string]Report{"artifacts": {Error: "new", ErrorAt: noon.Add(-time.Minute)}}}
	for _, order := range [][]Reports{{one, two}, {two, one}} {
		if s := fold(nil, order...)["artifacts"]; s.Error != "new" {
			t.Errorf("%+v", s)
		}
	}
}

func TestADutyWithARequestThatNoProcessRunsIsShown(t *testing.T) {
	if s := fold(map[string]Control{"relay": {Paused: true, Actor: "ada"}})["relay"]; s.Workers != 0 || !s.Paused {
		t.Errorf("%+v", s)
	}
}

func TestAReportIsTheSameAfterJSON(t *testing.T) {
	is := Reports{Worker: "a", At: noon, Duties: map[string]Report{"promote": {Last: noon, Next: noon.Add(time.Second), Took: 1, Runs: 7, Error: "x", ErrorAt: noon}}}
	body, err := json.Marshal(is)
	if err != nil {
		t.Fatal(err)
	}
	var again Reports
	if err := json.Unmarshal(body, &again); err != nil || again.Duties["promote"] != is.Duties["promote"] {
		t.Errorf("%s became %+v, %v", body, again, err)
	}
}
