package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

func TestAGroupIsShownWithItsMembersAndWhatFailed(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	list := s.shows("/groups", "november campaign", "december campaign", "3 of 4 complete, 1 failed", "0 of 4 complete, 4 queued", "/groups/"+s.Partial.String())
	if strings.Contains(list, "No groups") {
		t.Error("groups are listed, and said not to be there")
	}
	s.shows("/groups/"+s.Partial.String(), "VALIDATION_ERROR", "group%3A"+s.Partial.String()+"&#43;state%3Acomplete", "/redrives/new?group="+s.Partial.String(), "Retry failed")
	if text := s.shows("/groups?state=open", "december campaign"); strings.Contains(text, "november campaign") {
		t.Error("a settled group is listed as open")
	}
	s.shows("/groups?owner=nobody", "No groups match")
	for path, want := range map[string]int{"/groups?state=lost": 400, "/groups?cursor=x": 400, "/groups/x": 404, "/groups/" + holdfast.NewID().String(): 404} {
		if status, _ := s.get(path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
}

func TestAPartialGroupSaysWhatCanBeUsedAndIsRetried(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	id := s.partial()
	path := "/groups/" + id.String()
	s.shows("/groups?state=partial", "PARTIAL", "1 of 2 complete, 1 failed")
	s.shows(path, "PARTIAL: 1 of 2 complete, 1 failed.", "1 member did not complete", "report</strong> when it is ready, partial or failed", "Enqueued")
	_, text := s.post(path+"/retry", url.Values{"reason": {"mended"}, "back": {path}})
	if !strings.Contains(text, "1 job retried") || !strings.Contains(text, "Settled when the last member has ended") {
		t.Error("the page after a retry does not say so")
	}
	if g, err := s.Operator.Group(t.Context(), id); err != nil || g.Group.State != holdfast.GroupProcessing || g.Group.Generation != 2 {
		t.Errorf("%+v, %v", g.Group, err)
	}
	if _, text := s.post(path+"/cancel", url.Values{"back": {path}}); !strings.Contains(text, "give a reason") {
		t.Error("a group is cancelled without a reason")
	}
	s.post(path+"/cancel", url.Values{"reason": {"enough"}, "back": {path}})
	if g, err := s.Operator.Group(t.Context(), id); err != nil || len(g.Story) < 2 || g.Story[0].Actor != "ada" {
		t.Errorf("%+v, %v", g.Story, err)
	}
}

func TestAGroupInsideAnotherLeadsThereAndBack(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	inside, err := s.Store.CreateGroup(t.Context(), holdfast.Group{Name: "the first week", Parent: s.Open})
	if err != nil {
		t.Fatal(err)
	}
	s.shows("/groups/"+s.Open.String(), "Subgroups", "the first week", "/groups/"+inside.ID.String())
	s.shows("/groups/"+inside.ID.String(), "december campaign", "/groups/"+s.Open.String(), "Seal")
}

func TestAnOpenGroupIsSealedFromItsPage(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	path := "/groups/" + s.Open.String()
	if _, text := s.post(path+"/seal", url.Values{"back": {path}}); !strings.Contains(text, "Group sealed") {
		t.Error("the page does not confirm the seal")
	}
	if g, err := s.Operator.Group(t.Context(), s.Open); err != nil || g.Group.SealedAt.IsZero() {
		t.Errorf("%+v, %v", g.Group, err)
	}
}

func TestViewersLookAtGroupsQueuesWorkersAndSchedulesAndChangeNothing(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	for _, path := range []string{"/groups", "/groups/" + s.Partial.String(), "/queues", "/workers", "/schedules"} {
		if text := s.shows(path); strings.Contains(text, `<form class="popup"`) {
			t.Errorf("%s offers a viewer to change something", path)
		}
	}
	for _, path := range []string{"/groups/" + s.Open.String() + "/seal", "/holds/place", "/holds/lift", "/shares/set", "/health/duties/promote/pause", "/schedules/sweep/run", "/schedules/sweep/remove"} {
		if status, _ := s.post(path, url.Values{"reason": {"x"}}); status != http.StatusForbidden {
			t.Errorf("%s: %d", path, status)
		}
	}
}

func TestHostileTextsAreInertOnThePagesOfWork(t *testing.T) {
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	s := newScene(t, apikey.Operator, func(column, text string) string {
		switch column {
		case "group", "owner", "reason", "worker", "message", "actor", "tag", "version":
			return text + hostile
		}
		return text
	})
	for _, path := range []string{"/groups", "/groups/" + s.Partial.String(), "/queues", "/workers", "/schedules"} {
		if text := s.shows(path, "&lt;script&gt;"); strings.Contains(text, "<script>alert") || strings.Contains(text, "<img src=x") {
			t.Errorf("%s contains hostile markup", path)
		}
	}
}

// partial makes a group of which one member completed and one failed, and that is followed by a job.
func (s *scene) partial() holdfast.ID {
	s.t.Helper()
	ctx := s.t.Context()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	g, err := s.Store.CreateGroup(ctx, holdfast.Group{Name: "both halves", Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "report"}}}})
	must(err)
	_, err = s.Store.Enqueue(ctx, []holdfast.Draft{{Kind: "half", Queue: "halves", Group: g.ID}, {Kind: "half", Queue: "halves", Group: g.ID}})
	must(err)
	must(s.Store.SealGroup(ctx, g.ID))
	leases, err := s.Store.Claim(ctx, store.Claim{Worker: "w", Queues: []string{"halves"}, Limit: 2, Start: 2, Lease: 3600e9})
	must(err)
	failed := &holdfast.Failure{Code: "INTERNAL_ERROR", Message: "the other half is gone"}
	_, err = s.Store.Settle(ctx, []store.Settlement{
		{Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Complete},
		{Batch: leases[1].Batch, Job: leases[1].ID, Token: leases[1].Token, To: holdfast.Failed, Failure: failed},
	})
	must(err)
	_, err = s.Store.AdvanceGroups(ctx, 10)
	must(err)
	return g.ID
}

func TestTheGraphOfAGroupShowsWhatItsMembersWaitFor(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	if text := s.shows("/groups/" + s.Open.String()); strings.Contains(text, "group-graph") {
		t.Error("a group in which no member waits for another has a picture")
	}
	group, err := s.Store.CreateGroup(t.Context(), holdfast.Group{Name: "order 1842"})
	if err != nil {
		t.Fatal(err)
	}
	drafts := []holdfast.Draft{{Kind: "pay", Step: "charge"}, {Kind: "pay", Step: "refund", When: []holdfast.Condition{{Step: "charge", On: holdfast.OnFailed}}}}
	for range 3 {
		drafts = append(drafts, holdfast.Draft{Kind: "ship", When: []holdfast.Condition{{Step: "charge"}}})
	}
	drafts = append(drafts, holdfast.Draft{Kind: "report", When: []holdfast.Condition{{Step: "charge", On: holdfast.OnEnded}, {Step: "refund", On: holdfast.OnEnded}}})
	for i := range drafts {
		drafts[i].Group = group.ID
	}
	receipts, err := s.Store.Enqueue(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	s.shows("/groups/"+group.ID.String(), `<svg class="graph"`, "charge, queued", "refund, waiting", "ship × 3, waiting", "/jobs/"+receipts[1].ID.String(), "kind%3Aship",
		"starts when the other failed", "starts when the other has ended", "graph-on-complete")
}
