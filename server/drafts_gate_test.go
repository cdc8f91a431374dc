package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

func TestDraftsOfASettlementAreCheckedAndCompletedLikeOthersAndARefusedOneRefusesOnlyItsOwn(t *testing.T) {
	s := newGateScene(t, func(cfg *Config) {
		cfg.Prepare = func(d *holdfast.Draft) error {
			if d.Kind == "refused" {
				return invalid("the kind %s needs arguments", d.Kind)
			}
			d.Dependency = "host"
			return nil
		}
	})
	s.keys["mailer"] = s.makeKey(apikey.Request{Name: "mailer", Scope: apikey.Worker, Kinds: []string{"mail", "refused"}})
	settle := func(next string) (id holdfast.ID, says string) {
		s.job("")
		leases, err := s.store.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 2, Start: 2, Lease: time.Minute})
		if err != nil || len(leases) != 1 {
			t.Fatal(leases, err)
		}
		other := s.job("")
		second, err := s.store.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Minute})
		if err != nil || len(second) != 1 {
			t.Fatal(second, err)
		}
		body := func(l store.Lease, more string) string {
			return `{"batch":"` + l.Batch.String() + `","job":"` + l.ID.String() + `","token":` + itoa(l.Token) + `,"to":"complete"` + more + `}`
		}
		a := s.ask("mailer", "POST", "/v1/claims/settle", `{"settlements":[`+body(leases[0], `,"enqueue":[`+next+`]`)+`,`+body(second[0], "")+`]}`)
		if a.status != http.StatusOK {
			t.Fatal(a.status, a.body)
		}
		if job, err := s.store.Job(t.Context(), other); err != nil || job.State != holdfast.Complete {
			t.Errorf("the other settlement of the call was not applied: %v %v", job.State, err)
		}
		return leases[0].ID, a.body
	}
	for _, refused := range []struct{ next, says string }{
		{`{"kind":"refused"}`, "job 1 of 1 to enqueue: the kind refused needs arguments"},
		{`{"kind":"mail"},{"kind":"pdf"}`, "it cannot enqueue jobs of other queues or kinds"},
	} {
		id, says := settle(refused.next)
		if !strings.Contains(says, refused.says) {
			t.Errorf("%s: answered %s", refused.next, says)
		}
		if job, err := s.store.Job(t.Context(), id); err != nil || job.State != holdfast.Processing {
			t.Errorf("%s: the job is %s (%v), want processing", refused.next, job.State, err)
		}
	}
	next := holdfast.NewID()
	id, _ := settle(`{"kind":"mail","id":"` + next.String() + `","queue":"slow"}`)
	job, err := s.store.Job(t.Context(), next)
	if err != nil || job.Dependency != "host" {
		t.Errorf("the enqueued job has the dependency %q (%v), want host", job.Dependency, err)
	}
	if job, err := s.store.Job(t.Context(), id); err != nil || job.State != holdfast.Complete {
		t.Errorf("the job is %s (%v), want complete", job.State, err)
	}
}

// Failed calls open the breaker of the dependency that a job names, so an owner could otherwise stop the jobs of the others.
func TestAKeyBoundToAnOwnerCannotChooseADependency(t *testing.T) {
	s := newGateScene(t)
	s.keys["tenant"] = s.makeKey(apikey.Request{Name: "tenant", Scope: apikey.Operator, Owner: "acme"})
	draft := `{"kind":"mail","dependency":"bank"}`
	for _, way := range []struct{ path, body string }{
		{"/v1/jobs", draft}, {"/v1/jobs/bulk", "[" + draft + "]"}, {"/v1/groups", `{"then":[{"on":"ready","draft":` + draft + `}]}`},
	} {
		if a := s.ask("tenant", "POST", way.path, way.body); a.status != http.StatusBadRequest || !strings.Contains(a.body, "cannot choose the dependency") {
			t.Errorf("%s: %d %s", way.path, a.status, a.body)
		}
	}
	if a := s.ask("tenant", "POST", "/v1/jobs", `{"kind":"mail"}`); a.status != http.StatusCreated {
		t.Error(a.status, a.body)
	}
	if a := s.ask("operator", "POST", "/v1/jobs", draft); a.status != http.StatusCreated {
		t.Error(a.status, a.body)
	}
}
