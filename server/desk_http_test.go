package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A question is an HTTP request as any client would send it.
type question struct {
	method, path, body string
	header             map[string]string
}

// ask sends the request and expects an answer with that status.
func (q question) ask(t *testing.T, server string, want int) (header http.Header, answer map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), q.method, server+"/v1"+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range q.header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != want {
		t.Fatalf("%s %s was answered with %s, wanted %d: %s", q.method, q.path, response.Status, want, body)
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Fatalf("%s %s was answered with %s: %v", q.method, q.path, body, err)
		}
	}
	return response.Header, answer
}

func enqueue(t *testing.T, s store.Store, drafts ...holdfast.Draft) (ids []holdfast.ID) {
	t.Helper()
	receipts, err := s.Enqueue(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range receipts {
		ids = append(ids, r.ID)
	}
	return ids
}

// fail makes a dead letter of the next job.
func fail(t *testing.T, s store.Store) {
	t.Helper()
	leases, err := s.Claim(t.Context(), store.Claim{Worker: "w1", Queues: []string{holdfast.DefaultQueue}, Limit: 1, Start: 1, Lease: time.Minute})
	if err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	l := leases[0]
	answers, err := s.Settle(t.Context(), []store.Settlement{{
		Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Failed, Charge: store.ChargeFailure, Limit: 1, Failure: &holdfast.Failure{Code: "TIMEOUT", Category: "timeout", Message: "slow"},
	}})
	if err != nil || answers[0] != nil {
		t.Fatal(answers, err)
	}
}

func TestALateEditIsDistinguishedFromAnImpossibleOne(t *testing.T) {
	s := openFile(t)
	web := serve(t, s, ops.Config{})
	at := "/jobs/" + enqueue(t, s, holdfast.Draft{Kind: "mail", Args: []byte(`{"to":"ann"}`)})[0].String()
	header, _ := question{"GET", at, "", nil}.ask(t, web.URL, 200)
	tag := header.Get("ETag")
	patch := question{"PATCH", at, `{"args":{"to":"bob"},"reason":"a new address"}`, map[string]string{"If-Match": tag, "Content-Type": "application/merge-patch+json"}}
	header, job := patch.ask(t, web.URL, 200)
	if args, _ := job["args"].(map[string]any); args["to"] != "bob" || header.Get("ETag") == tag || header.Get("ETag") == "" {
		t.Errorf("the edited job is %v with ETag %s", job, header.Get("ETag"))
	}
	if _, p := patch.ask(t, web.URL, 412); p["code"] != "precondition_failed" {
		t.Errorf("a late edit is told as %v", p)
	}
	patch.header["If-Match"] = "*"
	patch.ask(t, web.URL, 200)
	patch.header["If-Match"] = `"a", "b"`
	patch.ask(t, web.URL, 400)
	patch.header["If-Match"] = "bare"
	patch.ask(t, web.URL, 400)
	question{"POST", at + "/cancel", `{}`, nil}.ask(t, web.URL, 200)
	header, _ = question{"GET", at, "", nil}.ask(t, web.URL, 200)
	patch.header["If-Match"] = header.Get("ETag")
	if _, p := patch.ask(t, web.URL, 409); p["code"] != "conflict" {
		t.Errorf("the edit of an ended job is told as %v", p)
	}
}

func TestAListLinksToItsNextPage(t *testing.T) {
	s := openFile(t)
	web := serve(t, s, ops.Config{})
	enqueue(t, s, holdfast.Draft{Kind: "mail", Owner: "a&b"}, holdfast.Draft{Kind: "mail", Owner: "a&b"}, holdfast.Draft{Kind: "mail", Owner: "c"})
	seen, path := 0, "/jobs?owner=a%26b&limit=1"
	for pages := 0; path != "" && pages < 5; pages++ {
		header, page := question{"GET", path, "", nil}.ask(t, web.URL, 200)
		seen += len(page["jobs"].([]any))
		link, found := strings.CutSuffix(strings.TrimPrefix(header.Get("Link"), "</v1"), `>; rel="next"`)
		if path = ""; found {
			path = link
		}
	}
	if seen != 2 {
		t.Errorf("by following the links %d jobs were seen, wanted 2", seen)
	}
}

func TestARedriveIsStartedOncePerIdempotencyKey(t *testing.T) {
	s := openFile(t)
	web := serve(t, s, ops.Config{})
	order := question{"POST", "/redrives", `{"filter":{"code":"TIMEOUT"},"reason":"repaired"}`, map[string]string{"Idempotency-Key": "k1"}}
	order.ask(t, web.URL, 409) // there is nothing to redrive, so the key can be used again
	enqueue(t, s, holdfast.Draft{Kind: "mail"})
	fail(t, s)
	header, first := order.ask(t, web.URL, 202)
	if header.Get("Location") != "/v1/redrives/"+first["id"].(string) {
		t.Errorf("it is said to be at %q", header.Get("Location"))
	}
	if _, second := order.ask(t, web.URL, 202); second["id"] != first["id"] {
		t.Errorf("asked again, it was started again: %v and %v", first, second)
	}
	other := order
	other.body = `{"filter":{"code":"TIMEOUT"},"reason":"something else"}`
	if _, p := other.ask(t, web.URL, 422); p["code"] != "idempotency_key_reused" {
		t.Errorf("a key that was used for something else is told as %v", p)
	}
	other.header = nil
	if _, third := other.ask(t, web.URL, 202); third["id"] == first["id"] {
		t.Error("without a key it was taken for another")
	}
	_, list := question{"GET", "/redrives", "", nil}.ask(t, web.URL, 200)
	if n := len(list["redrives"].([]any)); n != 2 {
		t.Errorf("there are %d redrives, wanted 2", n)
	}
	_, one := question{"GET", "/redrives/" + first["id"].(string), "", nil}.ask(t, web.URL, 200)
	if filter := one["spec"].(map[string]any)["filter"].(map[string]any); filter["code"] != "TIMEOUT" || len(filter) != 1 {
		t.Errorf("its filter travels as %v", filter)
	}
}

func TestConcurrentRequestsStartARedriveOnce(t *testing.T) {
	s := openFile(t)
	web := serve(t, s, ops.Config{})
	enqueue(t, s, holdfast.Draft{Kind: "mail"})
	fail(t, s)
	var all sync.WaitGroup
	statuses := make([]int, 6)
	for n := range statuses {
		all.Go(func() {
			request, _ := http.NewRequestWithContext(t.Context(), "POST", web.URL+"/v1/redrives", strings.NewReader(`{"all":true}`))
			request.Header.Set("Idempotency-Key", "k1")
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
				statuses[n] = response.StatusCode
			}
		})
	}
	all.Wait()
	_, list := question{"GET", "/redrives", "", nil}.ask(t, web.URL, 200)
	if n := len(list["redrives"].([]any)); n != 1 || !slices.Contains(statuses, 202) {
		t.Errorf("there are %d redrives, and the answers were %v", n, statuses)
	}
}

func TestAPolicyIsAcceptedAsYAML(t *testing.T) {
	web := serve(t, openFile(t), ops.Config{})
	put := question{"PUT", "/policy", "kinds: {mail: {cost: 2}}\n", map[string]string{"Content-Type": "application/yaml"}}
	if _, p := put.ask(t, web.URL, 200); p["text"] != put.body || p["version"] != 1.0 {
		t.Errorf("the policy is %v", p)
	}
	put.body = "kinds: ["
	put.ask(t, web.URL, 400)
	put.header["Content-Type"] = "application/json"
	put.body = `{"text":"kinds: {mail: {cost: 3}}","reason":"dearer"}`
	put.ask(t, web.URL, 200)
	put.header["Content-Type"] = "text/html"
	put.ask(t, web.URL, 415)
}

func TestStuckJobsAreFoundAndProcessed(t *testing.T) {
	s := openFile(t)
	web := serve(t, s, ops.Config{})
	id := enqueue(t, s, holdfast.Draft{Kind: "mail"})[0]
	if _, err := s.Claim(t.Context(), store.Claim{Worker: "w1", Queues: []string{holdfast.DefaultQueue}, Limit: 1, Start: 1, Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	_, none := question{"GET", "/stuck", "", nil}.ask(t, web.URL, 200)
	if len(none["jobs"].([]any)) != 0 || none["looked"] != 1.0 {
		t.Errorf("a job within its lease is told as %v", none)
	}
	for { // until the store's clock has advanced
		_, some := question{"GET", "/stuck?after=1ns", "", nil}.ask(t, web.URL, 200)
		if jobs := some["jobs"].([]any); len(jobs) == 1 {
			if jobs[0].(map[string]any)["id"] != id.String() {
				t.Errorf("stuck is %v", jobs)
			}
			break
		}
	}
	question{"POST", "/stuck/process", `{"actor":"ann"}`, nil}.ask(t, web.URL, 204)
	_, trail := question{"GET", "/audit?subject=duty/reclaim", "", nil}.ask(t, web.URL, 200)
	if events := trail["events"].([]any); len(events) != 1 || events[0].(map[string]any)["actor"] != "ann" {
		t.Errorf("the trail is %v", trail)
	}
}

func TestAQueueIsPausedByItsName(t *testing.T) {
	s := openFile(t)
	web := serve(t, s, ops.Config{})
	enqueue(t, s, holdfast.Draft{Kind: "mail", Queue: "eu/mails"})
	question{"POST", "/queues/eu%2Fmails/pause", `{"for":"1h","reason":"too much"}`, map[string]string{"X-Request-Id": "r-1"}}.ask(t, web.URL, 204)
	_, queues := question{"GET", "/queues", "", nil}.ask(t, web.URL, 200)
	if q := queues["queues"].([]any)[0].(map[string]any); q["queue"] != "eu/mails" || q["held"] != true {
		t.Errorf("a paused queue is %v", q)
	}
	_, holds := question{"GET", "/holds", "", nil}.ask(t, web.URL, 200)
	if h := holds["holds"].([]any)[0].(map[string]any); h["actor"] != "local" || h["until"] == nil || h["behind"] != 1.0 {
		t.Errorf("the hold is %v", h)
	}
	question{"POST", "/queues/eu%2Fmails/resume", "", nil}.ask(t, web.URL, 204)
	if _, holds = (question{"GET", "/holds", "", nil}).ask(t, web.URL, 200); len(holds["holds"].([]any)) != 0 {
		t.Errorf("the holds are %v", holds)
	}
}

func TestRetentionRulesAreRemovedOnlyByDelete(t *testing.T) {
	web := serve(t, openFile(t), ops.Config{})
	question{"PUT", "/retention", `{"reason":"a slip"}`, nil}.ask(t, web.URL, 400)
	question{"PUT", "/retention", `{"rules":[{"name":"rest","for":"forever"}]}`, nil}.ask(t, web.URL, 204)
	_, r := question{"GET", "/retention", "", nil}.ask(t, web.URL, 200)
	if rule := r["rules"].([]any)[0].(map[string]any); rule["for"] != "forever" || rule["name"] != "rest" {
		t.Errorf("the rule travels as %v", rule)
	}
	question{"PUT", "/retention", `{"rules":[{"name":"rest","for":"-1ns"}]}`, nil}.ask(t, web.URL, 400)
	question{"DELETE", "/retention?reason=enough", "", nil}.ask(t, web.URL, 204)
	question{"DELETE", "/retention", "", nil}.ask(t, web.URL, 409)
}
