package openapi

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
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// documented is a server on a store of its own, with its document.
func documented(t *testing.T) (*server.Server, *huma.OpenAPI, *ops.Service, store.Store) {
	t.Helper()
	s, err := anystore.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	operator := ops.New(s, ops.Config{})
	srv, err := server.New(server.Config{Store: s, Operator: operator, Open: true, IgnoreKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	return srv, write(t, srv), operator, s
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

func operationOf(s *server.Server, name string) (api.Operation, bool) {
	for _, o := range s.Operations() {
		if o.Name == name {
			return o, true
		}
	}
	return api.Operation{}, false
}

func TestTheExamplesMatchTheirTypes(t *testing.T) {
	srv, doc, _, _ := documented(t)
	all, err := exchanges()
	if err != nil {
		t.Fatal(err)
	}
	for route, e := range all {
		r, ok := operationOf(srv, route)
		if !ok {
			t.Errorf("there is no route %s for its example", route)
			continue
		}
		if len(e.Out) > 0 {
			matches(t, doc, r.Out, route+" out", e.Out)
		}
		if body, has := r.In.FieldByName("Body"); has && len(e.In) > 0 {
			matches(t, doc, body.Type, route+" in", e.In)
		}
	}
	for _, code := range api.Codes() {
		text, err := json.Marshal(problemOf(code))
		if err != nil {
			t.Fatal(err)
		}
		matches(t, doc, reflect.TypeFor[api.Problem](), "problem "+code, text)
	}
}

// matches checks that an example has the type of its operation, and its schema.
func matches(t *testing.T, doc *huma.OpenAPI, of reflect.Type, name string, text []byte) {
	t.Helper()
	if err := api.Unmarshal(text, reflect.New(of).Interface()); err != nil {
		t.Errorf("the example %s: %v", name, err)
	}
	conform(t, doc, doc.Components.Schemas.Schema(described(of), true, name), "the example "+name, string(text))
}

// lively makes something of every sort, and answers with what stands for names in paths.
func lively(t *testing.T, operator *ops.Service, s store.Store) map[string]string {
	t.Helper()
	ctx, by := t.Context(), ops.Actor{Name: "ann", Reason: "to see"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	group, err := s.CreateGroup(ctx, holdfast.Group{Name: "spring", Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "report", Delay: time.Second}}}})
	must(err)
	receipts, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "mail", Args: []byte(`[1]`), Dependency: "gateway", Tags: []string{"a"}, RetryWithin: time.Hour}, {Kind: "mail", Group: group.ID}})
	must(err)
	delivery := holdfast.NewID()
	must(s.Apply(ctx, store.Change{Deliver: []holdfast.Draft{{ID: delivery, Kind: "holdfast.call", Queue: subscription.Queue, Owner: subscription.Owner(holdfast.NewID())}}}))
	must(s.ReportWorker(ctx, store.WorkerInfo{Worker: "w1", Queues: []string{"default"}, Kinds: []string{"mail"}, Slots: 1, For: time.Hour}))
	leases, err := s.Claim(ctx, store.Claim{Worker: "w1", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Hour})
	must(err)
	answers, err := s.Settle(ctx, []store.Settlement{{
		Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Failed, Charge: store.ChargeFailure, Limit: 1, Took: time.Second,
		Failure: &holdfast.Failure{Code: "TIMEOUT", Category: "timeout", Message: "slow", Fingerprint: "f1", Context: map[string]string{"host": "x"}},
	}})
	must(err)
	must(answers[0])
	must(s.Apply(ctx, store.Change{Artifacts: []store.Artifact{{Job: receipts[0].ID, Name: "source", Ref: "x"}}}))
	must(operator.ForceBreaker(ctx, "gateway", true, by))
	must(operator.Pause(ctx, store.Hold{Queue: "bulk", For: time.Hour, Rate: &store.Rate{PerSecond: 1, Burst: 1}, Actor: "ann"}))
	must(operator.SetShare(ctx, ops.Share{Owner: "acme", Weight: 2}, by))
	must(operator.PauseDuty(ctx, "promote", time.Hour, by))
	_, err = operator.SetSchedule(ctx, schedule.Schedule{Name: "daily", Every: time.Hour, Draft: holdfast.Draft{Kind: "report"}}, by)
	must(err)
	sub, err := operator.Subscribe(ctx, subscription.Subscription{Sink: "call", Target: "x", Events: []string{"*"}}, by)
	must(err)
	_, err = operator.ApplyPolicy(ctx, ops.PolicyRequest{Text: "kinds: {mail: {cost: 2}}"}, by)
	must(err)
	must(operator.ApplyRetention(ctx, []store.RetentionRule{{Name: "rest", For: store.Forever}}, by))
	_, _, err = operator.CreateKey(ctx, apikey.Request{Name: "shop", Scope: apikey.Viewer, ExpireIn: time.Hour}, by)
	must(err)
	round, err := operator.StartRedrive(ctx, redrive.Spec{Filter: store.Filter{Queue: "default"}, Actor: "ann"})
	must(err)
	_, err = s.Sequence(ctx, 100)
	must(err)
	return map[string]string{
		"/jobs/{id}": receipts[0].ID.String(), "/groups/{id}": group.ID.String(), "/breakers/{name}": "gateway", "/schedules/{name}": "daily", "/errors/{fingerprint}": "f1",
		"/subscriptions/{id}": sub.ID.String(), "/redrives/{id}": round.String(), "/deliveries/{id}": delivery.String(),
	}
}

func TestAnswersMatchTheDocument(t *testing.T) {
	srv, doc, operator, s := documented(t)
	names := lively(t, operator, s)
	web := httptest.NewServer(srv)
	defer web.Close()
	looked := 0
	for _, r := range srv.Operations() {
		if r.Method != http.MethodGet || strings.HasPrefix(r.Path, "/events") {
			continue
		}
		path := r.Path
		if at := strings.IndexByte(path, '{'); at >= 0 {
			end := at + strings.IndexByte(path[at:], '}') + 1
			path = path[:at] + names[path[:end]] + path[end:]
		}
		query := map[string]string{"get-analytics": "?within=1h", "get-latest": "?limit=10", "list-schedules": "?next=2", "list-trends": "?within=1h", "list-error-trends": "?within=1h&fingerprint=f", "explain-policy": "?kind=mail&code=TIMEOUT"}[r.Name]
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
		conform(t, doc, doc.Components.Schemas.Schema(described(r.Out), true, r.Name), "the answer to GET "+path, string(body))
		looked++
	}
	if looked < 35 {
		t.Errorf("only %d answers were looked at", looked)
	}
}

func TestWebhookRequestsMatchTheDocument(t *testing.T) {
	_, doc, operator, s := documented(t)
	lively(t, operator, s)
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
