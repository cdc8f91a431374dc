package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/internal/testprograms"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
)

// lateEngine is an engine that is made after the store, and decides about outcomes.
type lateEngine struct{ *engine.Engine }

// withEngine is a test server that has an engine, which decides about outcomes and runs no jobs of these queues.
func withEngine(t testing.TB) *testServer {
	t.Helper()
	judge := &lateEngine{}
	p := newTestServer(t, func(c *server.Config) { c.Settler = judge })
	e, err := engine.New(p.near, engine.Config{Queues: []string{"nobody"}, Log: silent, Policy: failure.Policy{Backoff: failure.Fixed(time.Minute), MaxAttempts: 2}})
	if err != nil {
		t.Fatal(err)
	}
	judge.Engine = e
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	for { // an engine decides only while it runs
		if _, err := e.SettleReports(ctx, nil); err == nil {
			return p
		}
		select {
		case err := <-ended:
			t.Fatalf("the engine ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
}

func (p *testServer) enqueue(drafts ...holdfast.Draft) []holdfast.ID {
	p.Helper()
	receipts, err := p.near.Enqueue(p.Context(), drafts)
	if err != nil {
		p.Fatal(err)
	}
	var ids []holdfast.ID
	for _, r := range receipts {
		ids = append(ids, r.ID)
	}
	return ids
}

// until waits until a condition on a job is true.
func (p *testServer) until(id holdfast.ID, want func(holdfast.Job) bool) holdfast.Job {
	p.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		job, err := p.near.Job(p.Context(), id)
		if err != nil {
			p.Fatal(err)
		}
		if want(job) {
			return job
		}
		if time.Now().After(end) {
			p.Fatalf("the job never becomes what it should: %+v", job)
		}
		_, _ = p.near.Await(p.Context(), []string{"never"}, 20*time.Millisecond)
	}
}

// lease claims one job as a worker in another language does.
func (p *testServer) lease() api.Lease {
	p.Helper()
	status, _, text := p.ask("POST", "/claims", `{"worker":"w1"}`)
	var out api.ClaimOut
	if err := api.UnmarshalLoose([]byte(text), &out); err != nil || status != http.StatusOK || len(out.Leases) != 1 {
		p.Fatal(status, text, err)
	}
	return out.Leases[0]
}

func (p *testServer) report(l api.Lease, rest string) api.Answers {
	p.Helper()
	status, _, text := p.ask("POST", "/claims/outcomes", fmt.Sprintf(`{"outcomes":[{"batch":"%s","job":"%s","token":%d,%s}]}`, l.Batch, l.ID, l.Token, rest))
	var out api.Answers
	if err := api.UnmarshalLoose([]byte(text), &out); err != nil || status != http.StatusOK || len(out.Answers) != 1 {
		p.Fatal(status, text, err)
	}
	return out
}

func TestTheServerDecidesWhatFollowsFromAnOutcome(t *testing.T) {
	p := withEngine(t)
	for _, c := range []struct {
		said  string
		state holdfast.State
		look  func(holdfast.Job) bool
	}{
		{`"outcome":"complete","result":{"pages":9007199254740993},"took":"1.5s"`, holdfast.Complete, func(j holdfast.Job) bool { return string(j.Result) == `{"pages":9007199254740993}` }},
		{`"outcome":"failed","message":"no answer","code":"NETWORK_ERROR"`, holdfast.Queued, func(j holdfast.Job) bool { return j.Failures == 1 && j.LastFailure.Code == "NETWORK_ERROR" }},
		{`"outcome":"failed","message":"gone","http_status":404`, holdfast.Failed, func(j holdfast.Job) bool { return j.LastFailure.Code == "NOT_FOUND" }},
		{`"outcome":"failed","message":"no","permanent":true,"context":{"proxy":"p7"},"detail":"line 7"`, holdfast.Failed, func(j holdfast.Job) bool {
			return j.LastFailure.Context["proxy"] == "p7" && strings.Contains(j.LastFailure.Detail, "line 7")
		}},
		{`"outcome":"failed","message":"later","retry_after":"50m"`, holdfast.Queued, func(j holdfast.Job) bool { return j.DueAt.Sub(j.AsOf) > 40*time.Minute }},
		{`"outcome":"throttled","message":"quota used up","http_status":429,"retry_after":"30m"`, holdfast.Queued, func(j holdfast.Job) bool {
			return j.Failures == 0 && j.Releases == 1 && j.DueAt.Sub(j.AsOf) > 25*time.Minute && j.LastFailure.Code == "RATE_LIMITED" && strings.Contains(j.LastFailure.Detail, "quota used up")
		}},
		{`"outcome":"throttled","message":"quota used up","code":"GW_5XX"`, holdfast.Queued, func(j holdfast.Job) bool {
			return j.Failures == 0 && j.DueAt.After(j.AsOf) && j.LastFailure.Code == "GW_5XX"
		}},
		{`"outcome":"snoozed","snooze":"3h"`, holdfast.Queued, func(j holdfast.Job) bool { return j.Failures == 0 && j.DueAt.Sub(j.AsOf) > 170*time.Minute }},
		{`"outcome":"released"`, holdfast.Queued, func(j holdfast.Job) bool { return j.Failures == 0 && j.Releases == 1 }},
		{`"outcome":"timed_out","message":"30 s are over"`, holdfast.Queued, func(j holdfast.Job) bool { return j.LastFailure.Code == "TIMEOUT" }},
		{`"outcome":"crashed","message":"IndexError","detail":"at line 3"`, holdfast.Failed, func(j holdfast.Job) bool { return j.LastFailure.Code == "SYSTEM_PANIC" }},
		{`"outcome":"unreadable","message":"no name"`, holdfast.Failed, func(j holdfast.Job) bool { return j.LastFailure.Code == "UNREADABLE_JOB" }},
	} {
		id := p.enqueue(holdfast.Draft{Kind: "mail"})[0]
		l := p.lease()
		if l.ID != id || l.Attempt != 1 {
			t.Fatalf("%s: claimed %+v", c.said, l)
		}
		for range 2 { // a report may be repeated
			if out := p.report(l, c.said); out.Answers[0] != nil {
				t.Errorf("%s: %+v", c.said, out.Answers[0])
			}
		}
		job, err := p.near.Job(t.Context(), id)
		if err != nil || job.State != c.state || !c.look(job) {
			t.Errorf("%s: %+v %+v", c.said, job, job.LastFailure)
		}
		if job.State == holdfast.Queued {
			if _, err := p.near.Cancel(t.Context(), store.Intervention{Job: id, Actor: "the test"}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAWorkerOverHTTPReadsUpstreamResultsAndAddsMembersOnce(t *testing.T) {
	p := withEngine(t)
	group, err := p.near.CreateGroup(t.Context(), holdfast.Group{})
	if err != nil {
		t.Fatal(err)
	}
	first := holdfast.NewID()
	p.enqueue(holdfast.Draft{ID: first, Kind: "mail", Group: group.ID, Step: "first"})
	if err := p.near.SealGroup(t.Context(), group.ID); err != nil {
		t.Fatal(err)
	}
	l := p.lease()
	if out := p.report(l, `"outcome":"failed","message":"no","enqueue":[{"kind":"mail"}]`); out.Answers[0] == nil || out.Answers[0].Code != "invalid" {
		t.Fatalf("a failed job enqueued others: %+v", out.Answers[0])
	}
	for range 2 { // a report may be repeated
		said := fmt.Sprintf(`"outcome":"complete","result":{"pages":2},"enqueue":[{"kind":"mail","group":"%s","when":[{"step":"first"}]}]`, group.ID)
		if out := p.report(l, said); out.Answers[0] != nil {
			t.Fatalf("%+v", out.Answers[0])
		}
	}
	jobs, _, err := p.near.Jobs(t.Context(), store.Filter{Group: group.ID})
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%d members, %v", len(jobs), err)
	}
	p.until(jobs[0].ID, func(j holdfast.Job) bool { return !j.Waiting })
	next := p.lease()
	ask := func(l api.Lease) (int, string) {
		status, _, text := p.ask("POST", "/claims/upstreams", fmt.Sprintf(`{"batch":"%s","job":"%s","token":%d,"step":"first"}`, l.Batch, l.ID, l.Token))
		return status, text
	}
	if status, text := ask(next); status != http.StatusOK || !strings.Contains(text, `"result":{"pages":2}`) || !strings.Contains(text, first.String()) {
		t.Error(status, text)
	}
	if status, text := ask(l); status != http.StatusConflict || !strings.Contains(text, "lease_lost") {
		t.Error(status, text)
	}
}

func TestAReportWithALostLeaseChangesNothing(t *testing.T) {
	p := withEngine(t)
	id := p.enqueue(holdfast.Draft{Kind: "mail"})[0]
	l := p.lease()
	p.report(l, `"outcome":"released"`)
	second := p.lease()
	if second.Token != l.Token+1 {
		t.Fatal(second.Token)
	}
	if out := p.report(l, `"outcome":"complete"`); out.Answers[0] == nil || out.Answers[0].Code != "lease_lost" {
		t.Fatal(out.Answers[0])
	}
	second.Token += 5 // a lease that was never handed out
	if out := p.report(second, `"outcome":"complete"`); out.Answers[0] == nil || out.Answers[0].Code != "lease_lost" {
		t.Fatal(out.Answers[0])
	}
	if job, err := p.near.Job(t.Context(), id); err != nil || job.State != holdfast.Processing {
		t.Fatal(job, err)
	}
	if out := p.report(l, `"outcome":"splendid"`); out.Answers[0] == nil || out.Answers[0].Code != "invalid" {
		t.Fatal(out.Answers[0])
	}
}

func TestAReportFindsAJobThatAnotherServerHandedOut(t *testing.T) {
	p := withEngine(t)
	id := p.enqueue(holdfast.Draft{Kind: "mail", MaxAttempts: 1})[0]
	leases, err := p.near.Claim(t.Context(), store.Claim{Worker: "w1", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Minute})
	if err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	if out := p.report(api.LeaseOf(leases[0]), `"outcome":"failed","message":"no answer"`); out.Answers[0] != nil {
		t.Fatal(out.Answers[0])
	}
	if job, err := p.near.Job(t.Context(), id); err != nil || job.State != holdfast.Failed {
		t.Fatal(job, err)
	}
	if trends, err := p.near.Trends(t.Context(), time.Hour, time.Hour); err != nil || len(trends) != 1 || trends[0].Queue != "default" || trends[0].Failed != 1 {
		t.Fatal(trends, err)
	}
}

func TestASettlementWhoseAnswerIsLostIsWrittenOnce(t *testing.T) {
	p := newTestServer(t)
	id := p.enqueue(holdfast.Draft{Kind: "mail"})[0]
	db := p.dial(client.Config{HTTP: &http.Client{Transport: losesOnce("/claims/settle")}}).Store()
	leases, err := db.Claim(t.Context(), store.Claim{Worker: "w1", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Minute})
	if err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	answers, err := db.Settle(t.Context(), []store.Settlement{{Batch: leases[0].Batch, Job: id, Token: leases[0].Token, To: holdfast.Complete, Result: []byte(`{ "a": 1 }`)}})
	if err != nil || len(answers) != 1 || answers[0] != nil {
		t.Fatal(answers, err)
	}
	if job, err := p.near.Job(t.Context(), id); err != nil || string(job.Result) != `{ "a": 1 }` {
		t.Fatal(job, err)
	}
}

func TestAClaimIsNotRepeated(t *testing.T) {
	p := newTestServer(t)
	way := losesOnce("/claims")
	_, err := p.dial(client.Config{HTTP: &http.Client{Transport: way}}).Store().Claim(t.Context(), store.Claim{Worker: "w1", Queues: []string{"default"}, Limit: 1, Lease: time.Minute})
	if !errors.Is(err, holdfast.ErrUnavailable) || way.calls.Load() != 1 {
		t.Fatal(err, way.calls.Load())
	}
}

func TestWorkersInPythonAndNodeProcessJobs(t *testing.T) {
	for program, file := range map[testprograms.Program]string{testprograms.Python: "python/worker.py", testprograms.Node: "node/worker.mjs"} {
		t.Run(program.Name, func(t *testing.T) {
			path, err := program.Ensure()
			if err != nil {
				t.Fatal(err)
			}
			p := withEngine(t)
			ids := p.enqueue(holdfast.Draft{Kind: "greet", Args: []byte(`{"name": "Ada"}`)}, holdfast.Draft{Kind: "nonsense"})
			worker := exec.Command(path, "../examples/worker/"+file)
			worker.Env = append(os.Environ(), "HOLDFAST_SERVER="+p.web.URL)
			worker.Stderr = os.Stderr
			if err := worker.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = worker.Process.Kill()
				_ = worker.Wait()
			})
			ended := func(j holdfast.Job) bool { return j.State.Terminal() || j.Failures > 0 }
			if job := p.until(ids[0], ended); job.State != holdfast.Complete || !strings.Contains(string(job.Result), "Hello, Ada!") {
				t.Fatalf("%+v", job)
			}
			if job := p.until(ids[1], ended); job.State != holdfast.Queued || !strings.Contains(job.LastFailure.Detail, "nonsense") {
				t.Fatalf("%+v %+v", job, job.LastFailure)
			}
			more := p.enqueue(holdfast.Draft{Kind: "greet", Args: []byte(`{"name": "Bob"}`)}) // the worker waits by now, and is woken
			if job := p.until(more[0], ended); job.State != holdfast.Complete {
				t.Fatalf("%+v", job)
			}
		})
	}
}
