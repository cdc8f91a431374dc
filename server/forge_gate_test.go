package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/store"
)

// Every way to create a job, with each of the reserved names.
func TestNoKeyMakesAJobWithTheNamesOfADelivery(t *testing.T) {
	s := newGateScene(t)
	waits := s.job("bob")
	for _, draft := range []string{`{"kind":"holdfast.webhook"}`, `{"kind":"mail","queue":"holdfast"}`, `{"kind":"mail","owner":"subscription/x"}`, `{"kind":"HOLDFAST.mail","queue":"x"}`} {
		for _, ask := range []struct {
			who string
			badRequest
		}{
			{"worker", badRequest{"POST", "/v1/jobs", draft, nil}},
			{"admin", badRequest{"POST", "/v1/jobs", draft, nil}},
			{"operator", badRequest{"POST", "/v1/jobs/bulk", "[" + draft + "]", nil}},
			{"operator", badRequest{"POST", "/v1/groups", `{"then":[{"draft":` + draft + `}]}`, nil}},
			{"operator", badRequest{"PUT", "/v1/schedules/forged", `{"every":"1h","draft":` + draft + `}`, nil}},
			{"worker", badRequest{"POST", "/v1/store/apply", `{"enqueue":[` + draft + `]}`, nil}},
			{"admin", badRequest{"POST", "/v1/store/apply", `{"enqueue":[` + draft + `]}`, nil}},
		} {
			if a := s.send(t.Context(), ask.who, ask.badRequest); a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity {
				t.Errorf("%s as %s: %d %s", ask.path, ask.who, a.status, a.body)
			}
		}
		lines := s.ask("worker", "POST", "/v1/jobs/bulk", draft+"\n", "Content-Type", "application/x-ndjson")
		if !strings.Contains(lines.body, `"refused":1`) {
			t.Error("as a line:", lines.body)
		}
	}
	if a := s.ask("operator", "PATCH", "/v1/jobs/"+waits.String(), `{"queue":"holdfast"}`); a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity {
		t.Error("an edit:", a.status, a.body)
	}
	if a := s.ask("operator", "POST", "/v1/redrives", `{"all":true,"queue":"holdfast","reason":"x"}`); a.status/100 == 2 {
		t.Error("a redrive:", a.status, a.body)
	}
	delivery := `{"deliver":[{"kind":"holdfast.webhook","queue":"holdfast","owner":"subscription/01890a5d-ac96-774b-bcce-b302099a8057"}]}`
	if a := s.ask("worker", "POST", "/v1/store/apply", delivery); a.status != http.StatusForbidden {
		t.Error("a worker delivers:", a.status, a.body)
	}
	if jobs, _, err := s.store.Jobs(t.Context(), store.Filter{}); err != nil || len(jobs) != 1 {
		t.Error("jobs were made:", len(jobs), err)
	}
	if a := s.ask("admin", "POST", "/v1/store/apply", delivery); a.status != http.StatusNoContent {
		t.Error("a notifier with an admin's key:", a.status, a.body)
	}
}

func TestAChosenIdRevealsNothingToABoundKey(t *testing.T) {
	s := newGateScene(t)
	job, group, fresh := s.job("bob"), s.group("bob"), holdfast.NewID()
	for path, body := range map[string]string{"/v1/jobs": `{"kind":"mail","id":"ID"}`, "/v1/jobs/bulk": `[{"kind":"mail","id":"ID"}]`, "/v1/groups": `{"id":"ID"}`} {
		taken := job
		if path == "/v1/groups" {
			taken = group
		}
		foreign := s.ask("foreign", "POST", path, strings.ReplaceAll(body, "ID", taken.String()))
		unknown := s.ask("foreign", "POST", path, strings.ReplaceAll(body, "ID", fresh.String()))
		if foreign.whole() != unknown.whole() || foreign.status != http.StatusBadRequest && foreign.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: foreign\n%s\nunknown\n%s", path, foreign.whole(), unknown.whole())
		}
	}
	client, err := client.Dial("http://"+s.addr, client.Config{Key: s.keys["own"]})
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := client.Store().Enqueue(t.Context(), []holdfast.Draft{{Kind: "mail"}, {Kind: "mail", IdempotencyKey: "k"}})
	if err != nil || len(receipts) != 2 || receipts[0].ID == receipts[1].ID {
		t.Error("a Go program with a bound key:", receipts, err)
	}
}

func TestABoundKeySeesNoNameOrReasonOfAnOperator(t *testing.T) {
	s := newGateScene(t)
	job := s.job("bob")
	for _, h := range []store.Hold{{Queue: holdfast.DefaultQueue}, {Kind: "mail", Source: store.SourceHandler}, {Owner: "bob", AtMost: 1}, {Owner: "bob", Source: store.SourceLimit}} {
		h.Actor, h.Reason = "olga", "suspected of fraud"
		if err := s.store.Pause(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	path := "/v1/jobs/" + job.String() + "/explain"
	if all := s.ask("viewer", "GET", path, ""); !strings.Contains(all.body, "fraud") || !strings.Contains(all.body, "olga") {
		t.Fatal(all.body)
	}
	if own := s.ask("own", "GET", path, ""); own.status != http.StatusOK || strings.Contains(own.body, "fraud") || strings.Contains(own.body, "olga") || !strings.Contains(own.body, "queue paused") {
		t.Error(own.status, own.body)
	}
}

func TestTwoRequestsWithOneRequestIdAreTwoRedrives(t *testing.T) {
	s := newGateScene(t)
	for _, code := range []string{"TIMEOUT", "GONE"} {
		s.job("bob")
		leases, err := s.store.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{holdfast.DefaultQueue}, Limit: 1, Start: 1, Lease: time.Minute})
		if err != nil || len(leases) != 1 {
			t.Fatal(leases, err)
		}
		l := leases[0]
		answers, err := s.store.Settle(t.Context(), []store.Settlement{{
			Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Failed, Charge: store.ChargeFailure, Limit: 1, Took: time.Second, Failure: &holdfast.Failure{Code: code, Fingerprint: code},
		}})
		if err != nil || answers[0] != nil {
			t.Fatal(answers, err)
		}
	}
	start := func(key, body string) answerSeen {
		return s.ask("operator", "POST", "/v1/redrives", body, "Idempotency-Key", key, "X-Request-Id", "the-same")
	}
	first := start("k1", `{"filter":{"code":"TIMEOUT"},"reason":"a"}`)
	second := start("k2", `{"filter":{"code":"GONE"},"reason":"b"}`)
	if first.status != http.StatusAccepted || second.status != http.StatusAccepted || first.body == second.body {
		t.Fatal(first.status, first.body, second.status, second.body)
	}
	if again := start("k1", `{"filter":{"code":"TIMEOUT"},"reason":"a"}`); again.body != first.body {
		t.Error("the same order again:", again.status, again.body)
	}
	if other := start("k1", `{"filter":{"code":"GONE"},"reason":"b"}`); other.status != http.StatusUnprocessableEntity {
		t.Error("another order with the same key:", other.status, other.body)
	}
	if list := s.ask("operator", "GET", "/v1/redrives", ""); strings.Count(list.body, `"request":"the-same"`) != 2 {
		t.Error(list.body)
	}
}
