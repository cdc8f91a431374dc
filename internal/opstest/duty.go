package opstest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

func schedulesByHand(s *scene) {
	daily := schedule.Schedule{Name: "report", Cron: "0 9 * * *", Zone: "Europe/Berlin", Draft: holdfast.Draft{Kind: "report"}}
	_, err := s.operator.SetSchedule(s.ctx, daily, byPerson("", ""))
	s.expect(err, holdfast.ErrInvalid)
	_, err = s.operator.SetSchedule(s.ctx, schedule.Schedule{Name: "report", Cron: "never"}, byPerson("ann", ""))
	s.expect(err, holdfast.ErrInvalid)
	added, err := s.operator.SetSchedule(s.ctx, daily, byPerson("ann", "new"))
	s.must(err)
	if len(added.Next) != 1 || !added.Next[0].After(added.CreatedAt) {
		s.Errorf("a new schedule is %+v", added)
	}
	again, err := s.operator.SetSchedule(s.ctx, daily, byPerson("bob", "a restart"))
	s.must(err)
	s.expectEvents("schedule/report", "added")
	if !again.CreatedAt.Equal(added.CreatedAt) {
		s.Errorf("the same schedule once more is %+v, it was %+v", again, added)
	}
	list, err := s.operator.Schedules(s.ctx, 3)
	s.must(err)
	if len(list) != 1 || len(list[0].Next) != 3 || !strings.Contains(list[0].Words, "Europe/Berlin") || list[0].Next[1].Sub(list[0].Next[0]) < 23*time.Hour {
		s.Errorf("the schedules are %+v", list)
	}
	s.expect(s.operator.PauseSchedule(s.ctx, "report", -time.Hour, byPerson("ann", "")), holdfast.ErrInvalid)
	s.must(s.operator.PauseSchedule(s.ctx, "report", 100*time.Hour, byPerson("ann", "holidays")))
	one, err := s.operator.Schedule(s.ctx, "report", 1)
	s.must(err)
	if !one.Paused || one.Actor != "ann" || one.Reason != "holidays" || len(one.Next) != 1 || !one.Next[0].After(one.PausedUntil) {
		s.Errorf("a schedule that is paused for a while is %+v", one)
	}
	s.must(s.operator.PauseSchedule(s.ctx, "report", 0, byPerson("ann", "longer")))
	s.must(s.operator.RunSchedule(s.ctx, "report", byPerson("bob", "the boss asks")))
	if one, err = s.operator.Schedule(s.ctx, "report", 1); err != nil || len(one.Next) != 0 || one.RunNow != 1 || !one.PausedUntil.IsZero() {
		s.Errorf("a schedule that is paused until further notice is %+v, %v", one, err)
	}
	daily.Draft.Owner = "acme"
	replaced, err := s.operator.SetSchedule(s.ctx, daily, byPerson("ann", "for acme"))
	s.must(err)
	if !replaced.Paused || replaced.RunNow != 1 || !replaced.CreatedAt.Equal(added.CreatedAt) || replaced.Draft.Owner != "acme" {
		s.Errorf("a schedule that was replaced is %+v", replaced)
	}
	s.must(s.operator.ResumeSchedule(s.ctx, "report", byPerson("ann", "")))
	s.expect(s.operator.ResumeSchedule(s.ctx, "report", byPerson("ann", "")), holdfast.ErrConflict)
	s.must(s.operator.RemoveSchedule(s.ctx, "report", byPerson("ann", "no longer read")))
	s.expect(s.operator.RemoveSchedule(s.ctx, "report", byPerson("ann", "")), holdfast.ErrNotFound)
	s.expect(s.operator.RunSchedule(s.ctx, "report", byPerson("ann", "")), holdfast.ErrNotFound)
	s.expectEvents("schedule/report", "removed", "resumed", "replaced", "run now", "paused", "paused", "added")
}

func dutiesByHand(s *scene) {
	for _, name := range []string{"claim", "wake", "renew", "watch", "breakers"} {
		s.expect(s.operator.PauseDuty(s.ctx, name, 0, byPerson("ann", "")), holdfast.ErrInvalid)
	}
	s.expect(s.operator.PauseDuty(s.ctx, "promotion", 0, byPerson("ann", "")), holdfast.ErrNotFound)
	s.expect(s.operator.PauseDuty(s.ctx, "promote", 0, byPerson("", "")), holdfast.ErrInvalid)
	s.expect(s.operator.ResumeDuty(s.ctx, "promote", byPerson("ann", "")), holdfast.ErrConflict)
	waiting := s.enqueue(func(d *holdfast.Draft) { d.Delay = time.Hour })
	report := duty.Reports{Worker: "w1", At: time.Now(), Duties: map[string]duty.Report{"promote": {Last: time.Now(), Runs: 3, Error: "oh", ErrorAt: time.Now()}, "mail": {}}}
	body, err := json.Marshal(report)
	s.must(err)
	s.must(s.store.Apply(s.ctx, store.Change{Records: []store.Record{{Namespace: duty.NamespaceReport, Name: "w1", Body: body}}}))

	s.must(s.operator.PauseDuty(s.ctx, "promote", time.Hour, byPerson("ann", "to look")))
	s.must(s.operator.RunDuty(s.ctx, "mail", byPerson("bob", "")))
	list, err := s.operator.Duties(s.ctx)
	s.must(err)
	at := slices.IndexFunc(list, func(d duty.Status) bool { return d.Name == "promote" })
	if at < 0 {
		s.Fatalf("the duties are %+v", list)
	}
	if d := list[at]; !d.Paused || d.Actor != "ann" || d.Reason != "to look" || d.Until.IsZero() || d.Workers != 1 || d.Error != "oh" {
		s.Errorf("a paused duty is %+v", d)
	}
	s.expectReasons(waiting, "scheduled", "duty paused", "no worker")
	s.must(s.operator.ResumeDuty(s.ctx, "promote", byPerson("ann", "")))
	s.must(s.operator.RunDuty(s.ctx, "promote", byPerson("ann", "")))
	s.expectReasons(waiting, "scheduled", "no worker")
	s.expectEvents("duty/promote", "run now", "resumed", "paused")
	s.expectEvents("duty/mail", "run now")
}
