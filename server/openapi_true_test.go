package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

// documented is a server on a store of its own, with its document.
func documented(t *testing.T) (*Server, *huma.OpenAPI, *ops.Service, holdfast.Store) {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	desk := ops.New(s, ops.Config{})
	srv, err := New(Config{Store: s, Desk: desk, Open: true, IgnoreKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	return srv, openapi(t, srv), desk, s
}

// conform checks JSON against a schema. Also what the schema does not know is wrong here: this server is not newer than its document.
func conform(t *testing.T, doc *huma.OpenAPI, schema *huma.Schema, what, text string) {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	registry := doc.Components.Schemas
	for _, s := range registry.Map() {
		if s.Type == huma.TypeObject && s.AdditionalProperties == nil && len(s.Properties) > 0 {
			s.AdditionalProperties = false
		}
		s.PrecomputeMessages()
	}
	schema.PrecomputeMessages()
	result := &huma.ValidateResult{}
	huma.Validate(registry, schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, value, result)
	for _, err := range result.Errors {
		t.Errorf("%s is not as it is documented: %v", what, err)
	}
}

func (s *Server) route(name string) (mounted, bool) {
	for _, m := range s.routes {
		if m.name == name {
			return m, true
		}
	}
	return mounted{}, false
}

func TestTheExamplesMatchTheirTypes(t *testing.T) {
	srv, doc, _, _ := documented(t)
	for name, text := range examples {
		if name == "problem" {
			var p api.Problem
			if err := api.Unmarshal([]byte(text), &p); err != nil {
				t.Error(err)
			}
			continue
		}
		route, way, _ := strings.Cut(name, " ")
		r, ok := srv.route(route)
		if !ok {
			t.Errorf("there is no route %s for its example", route)
			continue
		}
		of := r.answer()
		if way == "in" {
			body, _ := r.request().FieldByName("Body")
			of = body.Type
		}
		if err := api.Unmarshal([]byte(text), reflect.New(of).Interface()); err != nil {
			t.Errorf("the example %s: %v", name, err)
		}
		conform(t, doc, doc.Components.Schemas.Schema(of, true, name), "the example "+name, text)
	}
}

// lively makes something of every sort, and answers with what stands for names in paths.
func lively(t *testing.T, desk *ops.Service, s holdfast.Store) map[string]string {
	t.Helper()
	ctx, by := t.Context(), ops.By{Actor: "ann", Reason: "to see"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	group, err := s.Gather(ctx, holdfast.Group{Name: "spring", Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "report", Delay: time.Second}}}})
	must(err)
	receipts, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "mail", Args: []byte(`[1]`), Dependency: "gateway", Tags: []string{"a"}, RetryWithin: time.Hour}, {Kind: "mail", Group: group.ID}})
	must(err)
	delivery := holdfast.NewID()
	must(s.Keep(ctx, holdfast.Change{Deliver: []holdfast.Draft{{ID: delivery, Kind: "holdfast.call", Queue: subscription.Queue, Owner: subscription.Owner(holdfast.NewID())}}}))
	must(s.Present(ctx, holdfast.Presence{Worker: "w1", Queues: []string{"default"}, Kinds: []string{"mail"}, Slots: 1, For: time.Hour}))
	leases, err := s.Claim(ctx, holdfast.Claim{Worker: "w1", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Hour})
	must(err)
	answers, err := s.Settle(ctx, []holdfast.Settlement{{
		Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Failed, Charge: holdfast.ChargeFailure, Limit: 1, Took: time.Second,
		Failure: &holdfast.Failure{Code: "TIMEOUT", Category: "timeout", Message: "slow", Fingerprint: "f1", Context: map[string]string{"host": "x"}},
	}})
	must(err)
	must(answers[0])
	must(s.Keep(ctx, holdfast.Change{Artifacts: []holdfast.Artifact{{Job: receipts[0].ID, Name: "source", Ref: "x"}}}))
	must(desk.ForceBreaker(ctx, "gateway", true, by))
	must(desk.Pause(ctx, holdfast.Hold{Queue: "bulk", For: time.Hour, Rate: &holdfast.Rate{PerSecond: 1, Burst: 1}, Actor: "ann"}))
	must(desk.SetShare(ctx, ops.Share{Owner: "acme", Weight: 2}, by))
	must(desk.PauseDuty(ctx, "promote", time.Hour, by))
	_, err = desk.SetSchedule(ctx, schedule.Schedule{Name: "daily", Every: time.Hour, Draft: holdfast.Draft{Kind: "report"}}, by)
	must(err)
	sub, err := desk.Subscribe(ctx, subscription.Subscription{Sink: "call", Target: "x", Events: []string{"*"}}, by)
	must(err)
	_, err = desk.ApplyPolicy(ctx, ops.PolicyOrder{Text: "kinds: {mail: {cost: 2}}"}, by)
	must(err)
	must(desk.ApplyRetention(ctx, []holdfast.Retain{{Name: "rest", For: holdfast.Forever}}, by))
	_, _, err = desk.MakeKey(ctx, apikey.Order{Name: "shop", Scope: apikey.Viewer, ExpireIn: time.Hour}, by)
	must(err)
	round, err := desk.StartRedrive(ctx, redrive.Order{Filter: holdfast.Filter{Queue: "default"}, Actor: "ann"})
	must(err)
	_, err = s.Sequence(ctx, 100)
	must(err)
	return map[string]string{
		"/jobs/{id}": receipts[0].ID.String(), "/groups/{id}": group.ID.String(), "/breakers/{name}": "gateway", "/schedules/{name}": "daily", "/errors/{fingerprint}": "f1",
		"/subscriptions/{id}": sub.ID.String(), "/redrives/{id}": round.String(), "/deliveries/{id}": delivery.String(),
	}
}

func TestAnswersMatchTheDocument(t *testing.T) {
	srv, doc, desk, s := documented(t)
	names := lively(t, desk, s)
	web := httptest.NewServer(srv)
	defer web.Close()
	looked := 0
	for _, r := range srv.routes {
		if r.method != http.MethodGet || strings.HasPrefix(r.path, "/events") {
			continue
		}
		path := r.path
		if at := strings.IndexByte(path, '{'); at >= 0 {
			end := at + strings.IndexByte(path[at:], '}') + 1
			path = path[:at] + names[path[:end]] + path[end:]
		}
		query := map[string]string{"get-analytics": "?within=1h", "get-latest": "?limit=10", "list-schedules": "?next=2", "list-trends": "?within=1h", "list-error-trends": "?within=1h&fingerprint=f", "explain-policy": "?kind=mail&code=TIMEOUT"}[r.name]
		response, err := http.Get(web.URL + api.Prefix + path + query)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("GET %s was answered with %s: %s", path, response.Status, body)
			continue
		}
		conform(t, doc, doc.Components.Schemas.Schema(described(r.answer()), true, r.name), "the answer to GET "+path, string(body))
		looked++
	}
	if looked < 35 {
		t.Errorf("only %d answers were looked at", looked)
	}
}

func TestWebhookRequestsMatchTheDocument(t *testing.T) {
	_, doc, desk, s := documented(t)
	lively(t, desk, s)
	feed, err := s.Feed(t.Context(), 0, 100)
	if err != nil || len(feed.Events) == 0 {
		t.Fatal(feed, err)
	}
	for _, e := range feed.Events {
		e.Took = time.Second
		text, err := json.Marshal(notify.Wrap("", e))
		if err != nil {
			t.Fatal(err)
		}
		conform(t, doc, &huma.Schema{Ref: schemas + "CloudEvent"}, "an event", string(text))
	}
}
