package opstest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// order takes the dead letters of the default queue.
func order() redrive.Spec {
	return redrive.Spec{Filter: store.Filter{Queue: holdfast.DefaultQueue}, Actor: "ann", Reason: "repaired"}
}

// failedAs makes a dead letter of a draft.
func (s *scene) failedAs(change func(*holdfast.Draft)) holdfast.ID {
	s.Helper()
	id := s.enqueue(change)
	s.settle(s.claim(id), fail)
	return id
}

func previewByReason(s *scene) {
	operator := s.another(ops.Config{Sources: map[string]func(context.Context, holdfast.Job) error{
		"report": func(context.Context, holdfast.Job) error { return errors.New("the file was deleted") },
	}})
	first, second := s.failed(), s.failed()
	s.must(s.operator.Discard(s.ctx, by(s.failed())))
	s.settle(s.claim(s.enqueue()), complete)
	s.failedAs(func(d *holdfast.Draft) { d.ExpireIn = 2 * time.Second })
	s.failedAs(func(d *holdfast.Draft) { d.Kind = "report" })
	again := s.failed()
	_, err := s.operator.Retry(s.ctx, by(again))
	s.must(err)
	s.settle(s.claim(again), fail)
	s.failedAs(func(d *holdfast.Draft) { d.UniqueKey = "k" })
	s.failedAs(func(d *holdfast.Draft) { d.UniqueKey = "twins" })
	s.failedAs(func(d *holdfast.Draft) { d.UniqueKey = "twins" })
	s.enqueue(func(d *holdfast.Draft) { d.UniqueKey = "k" })
	o := order()
	o.Filter.Generation = 1
	var preview ops.Preview
	s.eventually("the expiry", func() bool {
		preview, err = operator.PreviewRedrive(s.ctx, o)
		s.must(err)
		return len(preview.Ineligible) == 6
	})
	got := map[string]int{}
	for _, not := range preview.Ineligible {
		got[not.Reason] = not.Jobs
	}
	for reason, jobs := range map[string]int{"not failed": 2, "discarded": 1, "expired": 1, "unique key held by another": 2, "source gone": 1, "another generation": 1} {
		if got[reason] != jobs {
			s.Errorf("%d jobs are ineligible because they are %s, wanted %d", got[reason], reason, jobs)
		}
	}
	if preview.Eligible != 3 || len(preview.Sample) != 3 || preview.Sample[1].ID != second || preview.Sample[2].ID != first {
		s.Errorf("%d are eligible, with the sample %+v", preview.Eligible, preview.Sample)
	}
	if len(preview.Notes) == 0 || !strings.Contains(preview.Notes[len(preview.Notes)-1], "no worker is alive") {
		s.Errorf("the notes are %q", preview.Notes)
	}
	s.expectState(first, holdfast.Failed)
}

func redriveToItsEnd(s *scene) {
	good, bad := s.failed(), s.failed()
	_, err := s.operator.StartRedrive(s.ctx, redrive.Spec{Actor: "ann"})
	s.expect(err, holdfast.ErrInvalid)
	none := order()
	none.Filter.Code = "GW_5XX"
	_, err = s.operator.StartRedrive(s.ctx, none)
	s.expect(err, holdfast.ErrConflict)

	id, err := s.operator.StartRedrive(s.ctx, order())
	s.must(err)
	r, err := s.operator.Redrive(s.ctx, id)
	s.must(err)
	if r.State != redrive.Running || r.Eligible != 2 || r.Counts.Taken != 0 || r.Spec.Reason != "repaired" || r.StartedAt.IsZero() {
		s.Errorf("a new redrive is %+v", r)
	}
	answers, err := s.store.Redrive(s.ctx, r.Step([]holdfast.ID{good, bad}))
	s.must(err)
	s.must(errors.Join(answers...))
	s.settle(s.claim(good), complete)
	s.settle(s.claim(bad), fail)
	r, err = s.operator.Redrive(s.ctx, id)
	s.must(err)
	if r.Counts != (store.RedriveCounts{Taken: 2, Complete: 1, Failed: 1}) || len(r.FailedAgain) != 1 || r.FailedAgain[0].ID != bad {
		s.Errorf("the redrive came to %+v, and %d jobs failed again", r.Counts, len(r.FailedAgain))
	}
	lines := s.expectStory(bad, "queued", "failed", "redrive", "failed")
	if want := "redriven by ann in redrive " + id.String() + ": repaired"; lines[2].Text != want || lines[2].Generation != 2 {
		s.Errorf("the redrive is shown as %+v, wanted %q", lines[2], want)
	}
}

func redrivesByHand(s *scene) {
	s.failed()
	id, err := s.operator.StartRedrive(s.ctx, order())
	s.must(err)
	s.expect(s.operator.ResumeRedrive(s.ctx, id, byPerson("ann", "")), holdfast.ErrConflict)
	s.expect(s.operator.PauseRedrive(s.ctx, id, byPerson("", "")), holdfast.ErrInvalid)
	s.must(s.operator.PauseRedrive(s.ctx, id, byPerson("bob", "lunch")))
	s.expect(s.operator.PauseRedrive(s.ctx, id, byPerson("bob", "")), holdfast.ErrConflict)
	s.must(s.operator.ResumeRedrive(s.ctx, id, byPerson("bob", "")))
	s.must(s.operator.CancelRedrive(s.ctx, id, byPerson("eve", "enough")))
	s.expect(s.operator.ResumeRedrive(s.ctx, id, byPerson("eve", "")), holdfast.ErrConflict)
	s.expect(s.operator.PauseRedrive(s.ctx, holdfast.NewID(), byPerson("eve", "")), holdfast.ErrNotFound)
	_, err = s.operator.Redrive(s.ctx, holdfast.NewID())
	s.expect(err, holdfast.ErrNotFound)
	second, err := s.operator.StartRedrive(s.ctx, order())
	s.must(err)
	list, err := s.operator.Redrives(s.ctx)
	s.must(err)
	if len(list) != 2 || list[0].ID != second || list[1].ID != id || list[1].State != redrive.Cancelled || !strings.Contains(list[1].Why, "enough") {
		s.Errorf("the redrives are %+v", list)
	}
	s.expectEvents("redrive/"+id.String(), "cancelled", "resumed", "paused", "started")
}
