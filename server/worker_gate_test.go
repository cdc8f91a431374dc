package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

// keep stores a change with a worker's key.
func (s *gateScene) keep(who, change string) answerSeen {
	s.t.Helper()
	return s.ask(who, "POST", "/v1/store/apply", change)
}

func TestTheActorOfAWorkersChangeIsItsKey(t *testing.T) {
	s := newGateScene(t)
	if a := s.keep("worker", `{"records":[{"namespace":"breaker","name":"bank","version":0,"body":{"state":"open"}}],
		"events":[{"subject":"breaker/bank","name":"opened","actor":"ada","reason":"I, Ada, did this"}],"place":[{"dependency":"bank","source":"breaker","actor":"ada"}]}`); a.status != http.StatusNoContent {
		t.Fatal(a.status, a.body)
	}
	events, err := s.store.Events(t.Context(), "breaker/bank", 10)
	if err != nil || len(events) != 1 || events[0].Actor != "holdfast (key worker)" || events[0].Request != "the-same" {
		t.Error(events, err)
	}
	holds, err := s.store.Holds(t.Context())
	if err != nil || len(holds) != 1 || holds[0].Actor != "holdfast (key worker)" {
		t.Error(holds, err)
	}
	if trail, err := s.operator.AuditLog(t.Context(), ops.AuditFilter{Subject: "breaker/bank"}); err != nil || len(trail.Events) != 0 {
		t.Error("what an engine did is in the audit trail:", trail, err)
	}
	job := s.job("bob")
	for _, event := range []string{
		`"subject":"key/x"`, `"subject":"Key/x"`, `"subject":"KEY"`, `"subject":"policy"`, `"subject":"Share/x"`, `"subject":"subscription/x"`, `"subject":"Queue/payments"`,
		`"subject":"queue/payments"`, `"subject":"hold/queue/payments"`, `"subject":"story"`, `"subject":"Audit"`, `"subject":"retention"`, `"subject":"Breaker/bank"`, `"subject":"group/x"`,
		`"job":"` + job.String() + `"`,
	} {
		if a := s.keep("worker", `{"events":[{`+event+`,"name":"paused","actor":"ada"}]}`); a.status != http.StatusForbidden {
			t.Errorf("a line about %s: %d %s", event, a.status, a.body)
		}
	}
	for _, namespace := range []string{"key", "Key", "policy", "share", "subscription", "Retention", "mailbox", "redrive-order", "mine"} {
		if a := s.keep("worker", `{"records":[{"namespace":"`+namespace+`","name":"x","version":0,"body":{}}]}`); a.status != http.StatusForbidden {
			t.Errorf("a record in %s: %d %s", namespace, a.status, a.body)
		}
	}
	if a := s.keep("worker", `{"listen":[{"name":"subscription/x"}]}`); a.status != http.StatusForbidden {
		t.Error("a worker changes what a subscription listens for:", a.status, a.body)
	}
}

func TestTheActorOfAnAdminIsItsKeyAndNotAnEngine(t *testing.T) {
	s := newGateScene(t)
	for said, want := range map[string]string{"eve": "eve (key admin)", "Admin": "admin", "holdfast": "admin", "Holdfast (key worker)": "admin", "": "admin"} {
		subject := "queue/" + itoa(len(said))
		if a := s.keep("admin", `{"events":[{"subject":"`+subject+`","name":"paused","actor":"`+said+`"}]}`); a.status != http.StatusNoContent {
			t.Fatal(a.status, a.body)
		}
		if trail, err := s.operator.AuditLog(t.Context(), ops.AuditFilter{Subject: subject, Actor: strings.ToUpper(want)}); err != nil || len(trail.Events) != 1 || trail.Events[0].Actor != want {
			t.Errorf("who says %q: %+v %v", said, trail.Events, err)
		}
	}
	for _, name := range []string{"holdfast", "Holdfast (key worker)", "Policy"} {
		if err := (apikey.Request{Name: name, Scope: apikey.Operator}).Check(); err == nil {
			t.Errorf("a key is named %q", name)
		}
	}
	if err := s.operator.SetShare(t.Context(), ops.Share{Owner: "bob", Weight: 2}, ops.Actor{Name: "Holdfast"}); !errors.Is(err, holdfast.ErrInvalid) {
		t.Error("a person is named like an engine:", err)
	}
}

func TestAWorkerNeitherPlacesNorLiftsAnOperatorsHold(t *testing.T) {
	s := newGateScene(t)
	for _, h := range []store.Hold{{Queue: "payments", Actor: "olga"}, {Kind: "mail", AtMost: 3, Source: store.SourceLimit, Actor: "olga"}} {
		if err := s.store.Pause(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.operator.ForceBreaker(t.Context(), "bank", true, ops.Actor{Name: "olga", Reason: "they asked"}); err != nil {
		t.Fatal(err)
	}
	was := s.holds()
	for _, change := range []string{
		`{"lift":[{"queue":"payments"}]}`, `{"lift":[{"queue":"payments","source":"operator"}]}`, `{"place":[{"queue":"other"}]}`, `{"place":[{"queue":"other","source":"Operator"}]}`,
		`{"place":[{"queue":"other","source":"mine"}]}`, `{"lift":[{"kind":"mail","source":"limit"}]}`, `{"place":[{"kind":"mail","source":"limit","at_most":900}]}`,
		`{"lift":[{"dependency":"bank","source":"breaker"}]}`,
		`{"records":[{"namespace":"breaker","name":"bank","version":1,"body":{"state":"closed"}}],"lift":[{"dependency":"bank","source":"breaker"}]}`,
		`{"records":[{"namespace":"breaker","name":"bank","version":1,"body":{"state":"forced-open","actor":"ada"}}]}`,
		`{"records":[{"namespace":"breaker","name":"bank","version":1}]}`,
		`{"records":[{"namespace":"breaker","name":"new","version":0,"body":{"state":"forced-open"}}]}`,
		`{"records":[{"namespace":"breaker","name":"new","version":0,"body":{"state":"open","history":[{"from":"closed","to":"open","actor":"ada"}]}}]}`,
	} {
		if a := s.keep("worker", change); a.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", change, a.status, a.body)
		}
	}
	if is := s.holds(); is != was {
		t.Errorf("holds were\n%s\nand are\n%s", was, is)
	}
	if a := s.ask("worker", "POST", "/v1/store/holds", "{}"); a.status != http.StatusOK || strings.Contains(a.body, `"actor":"olga","since"`) || strings.Count(a.body, "payments") != 1 {
		t.Error("holds as a worker sees them:", a.status, a.body)
	}
	if a := s.keep("worker", `{"place":[{"queue":"other","source":"limit","at_most":2,"actor":"ada"}]}`); a.status != http.StatusNoContent {
		t.Error("a limit of the policy:", a.status, a.body)
	}
	if a := s.keep("worker", `{"lift":[{"queue":"other","source":"limit"}]}`); a.status != http.StatusNoContent {
		t.Error("a limit that the policy does not name any more:", a.status, a.body)
	}
}

// holds are all holds, as text.
func (s *gateScene) holds() string {
	s.t.Helper()
	holds, err := s.store.Holds(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	text, _ := json.Marshal(holds)
	return string(text)
}

func TestAWorkersKeyWritesEngineStateAndNoPersonsDecision(t *testing.T) {
	s := newGateScene(t)
	if _, err := s.operator.SetSchedule(t.Context(), schedule.Schedule{Name: "nightly", Every: time.Hour, Draft: holdfast.Draft{Kind: "mail"}}, me); err != nil {
		t.Fatal(err)
	}
	if err := s.operator.PauseDuty(t.Context(), "promote", 0, me); err != nil {
		t.Fatal(err)
	}
	records, err := s.store.Records(t.Context(), schedule.Namespace)
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	body := string(records[0].Body)
	for change, want := range map[string]int{
		`"namespace":"schedule","name":"nightly","version":1,"body":` + body:                                       204,
		`"namespace":"schedule","name":"nightly","version":2,"body":` + strings.Replace(body, "mail", "report", 1): 403,
		`"namespace":"schedule","name":"nightly","version":2`:                                                      403,
		`"namespace":"schedule","name":"mine","version":0,"body":` + body:                                          403,
		`"namespace":"duty","name":"promote","version":1,"body":{}`:                                                403,
		`"namespace":"duty","name":"reclaim","version":0,"body":{"paused":true}`:                                   403,
		`"namespace":"retention","name":"rules","version":0,"body":[{"name":"mine","for":0}]`:                      403,
		`"namespace":"budget","name":"bob","version":0,"body":{}`:                                                  204,
		`"namespace":"report","name":"w1","version":0,"body":{}`:                                                   204,
	} {
		if a := s.keep("worker", `{"records":[{`+change+`}]}`); a.status != want {
			t.Errorf("%s: %d %s, wanted %d", change, a.status, a.body, want)
		}
	}
}

func TestAWorkerChoosesNeitherWhatIsPurgedNorWhatIsForgotten(t *testing.T) {
	s := newGateScene(t)
	job := s.job("bob")
	if _, err := s.store.Cancel(t.Context(), store.Intervention{Job: job, Actor: "ada"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Sequence(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	if a := s.ask("worker", "POST", "/v1/store/purge", `{"rules":[{"name":"mine","for":"0s"}],"scan":100}`); a.status != http.StatusOK || !strings.Contains(a.body, `"jobs":0`) {
		t.Error("a purge by the worker's own rules:", a.status, a.body)
	}
	for _, history := range []string{store.HistoryStories, store.HistoryFeed, store.HistoryCounts, store.HistoryTombstones} {
		if a := s.ask("worker", "POST", "/v1/store/delete-history", `{"history":"`+history+`","older":"0s","limit":1000}`); a.status != http.StatusOK || !strings.Contains(a.body, `"count":0`) {
			t.Errorf("%s of no age: %d %s", history, a.status, a.body)
		}
	}
	if events, err := s.store.Events(t.Context(), "key/"+keyID(s.keys["admin"]), 10); err != nil || len(events) == 0 {
		t.Error("the audit log was wiped:", events, err)
	}
	if err := s.operator.ApplyRetention(t.Context(), []store.RetentionRule{{Name: "now", For: 0}}, me); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the applied rules hold, whatever the worker says", func() bool {
		a := s.ask("worker", "POST", "/v1/store/purge", `{"rules":[{"name":"mine","for":"forever"}],"scan":100}`)
		return strings.Contains(a.body, `"jobs":1`)
	})
}

func TestAWorkersKeyAdvancesOnlyRunningRedrives(t *testing.T) {
	s := newGateScene(t)
	id := holdfast.NewID()
	step := `{"id":"` + id.String() + `","jobs":["` + holdfast.NewID().String() + `"],"actor":"ada"}`
	if a := s.ask("worker", "POST", "/v1/store/redrive", step); a.status != http.StatusForbidden {
		t.Error("a redrive that was not ordered:", a.status, a.body)
	}
	body, _ := json.Marshal(redrive.Progress{ID: id, State: redrive.Running, Actor: "olga", Spec: redrive.Spec{Actor: "olga", All: true}})
	record := `{"records":[{"namespace":"redrive","name":"` + id.String() + `","version":0,"body":` + string(body) + `}]}`
	if a := s.keep("worker", record); a.status != http.StatusForbidden {
		t.Error("a worker orders a redrive:", a.status, a.body)
	}
	if err := s.store.Apply(t.Context(), store.Change{Records: []store.Record{{Namespace: "redrive", Name: id.String(), Body: body}}}); err != nil {
		t.Fatal(err)
	}
	if a := s.ask("worker", "POST", "/v1/store/redrive", step); a.status != http.StatusOK {
		t.Error("a step of an ordered one:", a.status, a.body)
	}
	if a := s.ask("worker", "POST", "/v1/store/redrive", strings.Replace(step, `"actor"`, `"discard":true,"reason":"x","actor"`, 1)); a.status != http.StatusForbidden {
		t.Error("a step that was ordered otherwise:", a.status, a.body)
	}
	again := strings.Replace(record, `"version":0`, `"version":1`, 1)
	for _, change := range []string{strings.Replace(again, "olga", "mallory", 2), strings.Replace(again, `"running"`, `"cancelled"`, 1)} {
		if a := s.keep("worker", change); a.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", change, a.status, a.body)
		}
	}
	if a := s.keep("worker", again); a.status != http.StatusNoContent {
		t.Error("its progress:", a.status, a.body)
	}
}

func TestAWorkersKeyCannotListJobs(t *testing.T) {
	s := newGateScene(t)
	if a := s.ask("worker", "POST", "/v1/store/jobs", `{"limit":10}`); a.status != http.StatusForbidden {
		t.Error("every job there is:", a.status, a.body)
	}
	if a := s.ask("worker", "POST", "/v1/store/jobs", `{"dead_letters":true}`); a.status != http.StatusOK {
		t.Error("dead letters, for a redrive:", a.status, a.body)
	}
}

func TestAKeyBoundToQueuesWorksOnlyOnThem(t *testing.T) {
	s := newGateScene(t)
	s.keys["narrow"] = s.makeKey(apikey.Request{Name: "narrow", Scope: apikey.Worker, Queues: []string{"a", "b"}, Kinds: []string{"mail"}})
	foreign := s.job("bob") // in the default queue
	for _, ask := range []struct {
		path, body string
		status     int
	}{
		{"/v1/jobs", `{"kind":"mail","queue":"a"}`, 201},
		{"/v1/jobs", `{"kind":"mail"}`, 403},
		{"/v1/jobs", `{"kind":"report","queue":"a"}`, 403},
		{"/v1/jobs/bulk", `[{"kind":"mail","queue":"b"},{"kind":"mail","queue":"c"}]`, 403},
		{"/v1/groups", `{"then":[{"draft":{"kind":"mail","queue":"c"}}]}`, 403},
		{"/v1/claims", `{"worker":"w","queues":["a"]}`, 200},
		{"/v1/claims", `{"worker":"w","queues":["a","default"]}`, 403},
		{"/v1/claims", `{"worker":"w"}`, 200},
		{"/v1/claims", `{"worker":"w","kinds":["report"]}`, 403},
		{"/v1/wakes", `{"queues":["default"],"patience":"0s"}`, 403},
		{"/v1/store/apply", `{"enqueue":[{"kind":"mail","queue":"c"}]}`, 403},
		{"/v1/store/apply", `{"records":[{"namespace":"schedule","name":"x","version":0,"body":{}}]}`, 403},
		{"/v1/store/job", `{"id":"` + foreign.String() + `"}`, 404},
		{"/v1/store/redrive", `{"id":"` + foreign.String() + `","jobs":[]}`, 403},
		{"/v1/store/artifacts", `{"job":"` + foreign.String() + `"}`, 404},
		{"/v1/store/group", `{"id":"` + foreign.String() + `"}`, 403},
		{"/v1/store/apply", `{"place":[{"queue":"c","source":"limit","at_most":2}]}`, 403},
		{"/v1/store/apply", `{"artifacts":[{"job":"` + foreign.String() + `","name":"x","ref":"y"}]}`, 404},
		{"/v1/store/apply", `{"records":[{"namespace":"budget","name":"x","version":0,"body":{}}]}`, 204},
	} {
		if a := s.ask("narrow", "POST", ask.path, ask.body); a.status != ask.status {
			t.Errorf("%s %s: %d %s, wanted %d", ask.path, ask.body, a.status, a.body, ask.status)
		}
	}
	for _, bad := range []apikey.Request{{Name: "x", Scope: apikey.Viewer, Queues: []string{"a"}}, {Name: "x", Scope: apikey.Worker, Queues: []string{"two words"}}, {Name: "x", Scope: apikey.Worker, Kinds: []string{""}}} {
		if bad.Check() == nil {
			t.Errorf("%+v is in order", bad)
		}
	}
}

func TestABoundKeySettlesRenewsAndReadsNoJobElsewhere(t *testing.T) {
	s := newGateScene(t)
	s.keys["narrow"] = s.makeKey(apikey.Request{Name: "narrow", Scope: apikey.Worker, Queues: []string{"a"}})
	s.keys["mailer"] = s.makeKey(apikey.Request{Name: "mailer", Scope: apikey.Worker, Kinds: []string{"mail"}})
	foreign, unknown := s.job("bob"), holdfast.NewID()
	mine := s.ask("narrow", "POST", "/v1/jobs", `{"kind":"report","queue":"a"}`)
	leases, err := s.store.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{holdfast.DefaultQueue}, Limit: 1, Start: 1, Lease: time.Hour})
	if err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	for _, path := range []string{"/v1/claims/settle", "/v1/claims/note", "/v1/claims/outcomes"} {
		if !slices.ContainsFunc(s.srv.routes, func(m mounted) bool { return "/v1"+m.path == path }) {
			t.Fatal("there is no route ", path)
		}
	}
	batch, token := leases[0].Batch.String(), itoa(leases[0].Token)
	about := func(id holdfast.ID) string {
		return `"batch":"` + batch + `","job":"` + id.String() + `","token":` + token
	}
	for path, body := range map[string]func(id holdfast.ID) string{
		"/v1/claims/settle": func(id holdfast.ID) string { return `{"settlements":[{` + about(id) + `,"to":"complete"}]}` },
		"/v1/claims/note":   func(id holdfast.ID) string { return `{"notes":[{` + about(id) + `,"progress":{"percent":5}}]}` },
		"/v1/claims/renew": func(id holdfast.ID) string {
			return `{"renewals":[{"batch":"` + batch + `","running":["` + id.String() + `"]}],"lease":"1h"}`
		},
		"/v1/store/job": func(id holdfast.ID) string { return `{"id":"` + id.String() + `"}` },
	} {
		seen := s.ask("narrow", "POST", path, body(foreign))
		never := s.ask("narrow", "POST", path, body(unknown))
		if same := strings.ReplaceAll(never.whole(), unknown.String(), foreign.String()); seen.whole() != same || !strings.Contains(seen.body, foreign.String()) {
			t.Errorf("%s: foreign\n%s\nunknown\n%s", path, seen.whole(), same)
		}
	}
	if job, err := s.store.Job(t.Context(), foreign); err != nil || job.State != holdfast.Processing {
		t.Error(job.State, err)
	}
	a := s.ask("narrow", "POST", "/v1/claims", `{"worker":"w"}`)
	var claimed struct {
		Leases []struct {
			ID, Batch string
			Token     int
		}
	}
	if err := json.Unmarshal([]byte(a.body), &claimed); err != nil || len(claimed.Leases) != 1 || !strings.Contains(mine.body, claimed.Leases[0].ID) {
		t.Fatal(a.body, err)
	}
	l := claimed.Leases[0]
	if a := s.ask("narrow", "POST", "/v1/claims/settle", `{"settlements":[{"batch":"`+l.Batch+`","job":"`+l.ID+`","token":`+itoa(l.Token)+`,"to":"complete"}]}`); a.status != http.StatusOK || strings.Contains(a.body, "problem") {
		t.Error("its own:", a.status, a.body)
	}
	if a := s.ask("mailer", "POST", "/v1/claims/settle", `{"settlements":[{`+about(foreign)+`,"to":"complete"}]}`); a.status != http.StatusOK || strings.Contains(a.body, "problem") {
		t.Error("a kind that it is bound to:", a.status, a.body)
	}
	if job, err := s.store.Job(t.Context(), foreign); err != nil || job.State != holdfast.Complete {
		t.Error(job.State, err)
	}
}
