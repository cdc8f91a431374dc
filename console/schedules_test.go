package console_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

func TestSchedulesSayWhenTheyRunAndHowItWent(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	s.shows("/schedules", "Every day at 02:30", "Europe/Berlin", "Every 15 minutes", "Paused by ada until it is resumed", "the vendor is on it", "No runs yet")
	if text := s.shows("/schedules?name=night", "nightly-report"); strings.Contains(text, `id="s-sweep"`) {
		t.Error("a schedule is shown that was not looked for")
	}
	s.shows("/schedules?name=nothing", "No schedules match")
}

func TestAScheduleIsRunResumedPausedAndRemoved(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	back := url.Values{"back": {"/schedules"}, "reason": {"holidays"}}
	for _, verb := range []string{"resume", "run", "pause", "remove"} {
		if status, text := s.post("/schedules/sweep/"+verb, back); status != 200 || !strings.Contains(text, "Schedule sweep") || strings.Contains(text, `class="banner bad"`) {
			t.Errorf("%s: %d, and no message is shown", verb, status)
		}
		plan, err := s.Operator.Schedule(t.Context(), "sweep", 1)
		if verb != "remove" && (err != nil || plan.Paused != (verb == "pause")) || verb == "run" && plan.RunNow != 1 || verb == "remove" && err == nil {
			t.Errorf("%s: %+v, %v", verb, plan, err)
		}
	}
	if _, text := s.post("/schedules/none/run", back); !strings.Contains(text, "There is no schedule") {
		t.Error("what is not there is run")
	}
}

func TestTheJobsThatAScheduleMadeAreShown(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	plan := schedule.Schedule{Name: "tidy/up", Every: time.Hour, Draft: holdfast.Draft{Kind: "tidy"}, Runs: 1, Last: time.Now()}
	if _, err := s.Operator.SetSchedule(t.Context(), plan, ops.Actor{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	receipts, err := s.Store.Enqueue(t.Context(), []holdfast.Draft{plan.Job(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	s.shows("/schedules", "tidy/up", "/jobs/"+receipts[0].ID.String())
	if _, text := s.post("/schedules/tidy%2Fup/pause", url.Values{"back": {"/schedules"}, "reason": {"x"}}); !strings.Contains(text, "Schedule tidy/up paused until it is resumed") {
		t.Error("a name with a slash is not found")
	}
}
