package console_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/store"
)

const confirm = ".job-confirm button[type=submit]"

// TestAllMatchingAreRetriedAtOnce: more than one page of jobs, one preview, one summary.
func TestAllMatchingAreRetriedAtOnce(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	s.fail(120, "crowd", "out of paper")
	p := s.open("/jobs?q=is:dead+kind:crowd")
	ready(p)
	p.Press("a")
	p.See("[data-selected-count]", "50")
	p.Click("input[data-all-matching]")
	p.See("[data-selected-count]", "120")
	p.Click("tbody tr:first-child input[name=job]") // deselecting one row also deselects "all that match"
	p.See("[data-selected-count]", "49")
	if browser.Eval[bool](p, `document.querySelector("input[data-all-matching]").checked`) {
		t.Error("all that match are still selected")
	}
	p.Press("\x1b")
	p.Until(`document.querySelector("[data-selection]").hidden`)
	p.Press("A")
	p.See("[data-selected-count]", "120")
	leads(p, "[data-selection] button[value=retry]")
	p.See("h1", "Retry 120 jobs?")
	p.See("main", "a redrive is safer")
	if n := s.count(store.Filter{Kind: "crowd", State: holdfast.Failed}); n != 120 {
		t.Fatalf("a preview changed something: %d have failed", n)
	}
	write(p, ".job-confirm input[name=reason]", "paper is back")
	leads(p, confirm)
	p.See("#flash", "120 jobs retried.")
	if n := s.count(store.Filter{Kind: "crowd", State: holdfast.Queued}); n != 120 {
		t.Errorf("%d of 120 are queued", n)
	}
	if n := len(rows(p)); n != 0 {
		t.Errorf("the list has %d rows after the action", n)
	}
}

// TestAPageIsNotAllOfThem: the box at the top selects what the page shows, and no more is retried.
func TestAPageIsNotAllOfThem(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	s.fail(60, "crowd", "out of paper")
	p := s.open("/jobs?q=is:dead+kind:crowd&limit=25")
	ready(p)
	p.Click("input[data-all]")
	p.See("[data-selected-count]", "25")
	leads(p, "[data-selection] button[value=retry]")
	p.See("h1", "Retry 25 jobs?")
	leads(p, confirm)
	p.See("#flash", "25 jobs retried.")
	if n := s.count(store.Filter{Kind: "crowd", State: holdfast.Failed}); n != 35 {
		t.Errorf("%d are left, not 35", n)
	}
	if browser.Eval[int](p, `location.search.includes("limit=25") ? 1 : 0`) != 1 {
		t.Error("the list is not restored")
	}
}

// TestWhatIsRefusedStaysSelected: the unique key of one job is taken, another has changed its state since it was selected. Both refusals are shown, without an error page.
func TestWhatIsRefusedStaysSelected(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	p := s.open("/jobs?q=is:dead+queue:fetch")
	ready(p)
	all := rows(p)
	moved := slices.IndexFunc(all, func(id string) bool { return id != s.Clash.String() })
	p.Press("a")
	leads(p, "[data-selection] button[value=retry]")
	id, err := holdfast.ParseID(all[moved])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Operator.Retry(t.Context(), store.Intervention{Job: id, Actor: "grace"}); err != nil {
		t.Fatal(err)
	}
	leads(p, confirm)
	p.See("#flash", "2 jobs retried, 2 skipped")
	p.See("#flash", "1 has a unique key that another job holds")
	p.See("#flash", "1 is already queued")
	p.See("tr[data-row='"+s.Clash.String()+"']", "unique key")
	p.See("tr[data-row='"+all[moved]+"']", "queued")
	p.See("[data-selected-count]", "2")
	left := ticked(p)
	slices.Sort(left)
	want := []string{s.Clash.String(), all[moved]}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("%v are selected, not %v", left, want)
	}
	if n := browser.Eval[int](p, `document.querySelectorAll("#flash").length`); n != 1 {
		t.Errorf("there are %d summaries", n)
	}
	leads(p, "[data-selection] button[value=discard]") // the remaining selection can be used
	p.See("main", "1 is queued")
	p.See("h1", "Discard 1 job?")
}

// TestWaitingJobsAreCancelledAndDeadLettersDiscarded: each asks first, and discarding asks for a reason.
func TestWaitingJobsAreCancelledAndDeadLettersDiscarded(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	s.enqueue(7, "crowd")
	p := s.open("/jobs?q=kind:crowd")
	ready(p)
	p.Press("a")
	p.Press("c")
	p.See("h1", "Cancel 7 jobs?")
	ready(p)
	leads(p, confirm)
	p.See("#flash", "7 jobs cancelled.")
	if n := s.count(store.Filter{Kind: "crowd", State: holdfast.Cancelled}); n != 7 {
		t.Errorf("%d of 7 are cancelled", n)
	}

	p.Go(s.site + "/jobs?q=is:dead+kind:convert")
	ready(p)
	p.Press("a")
	leads(p, "[data-selection] button[value=discard]")
	p.See("h1", "Discard 9 jobs?")
	if browser.Eval[bool](p, `document.querySelector(".job-confirm").checkValidity()`) {
		t.Error("no reason is asked for")
	}
	write(p, ".job-confirm input[name=reason]", "the customer left")
	leads(p, confirm)
	p.See("#flash", "9 jobs discarded.")
	if job := s.job(s.Failed[0]); !job.Discarded || job.State != holdfast.Failed {
		t.Errorf("the job is %s, discarded: %t", job.State, job.Discarded)
	}
	p.Go(s.site + "/jobs/" + s.Failed[0].String())
	p.See("#job-story", "the customer left")
	if !strings.Contains(p.Text(), "Retry now") {
		t.Error("a discarded job cannot be retried")
	}
}
