package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
)

// roleReporter is the role of a worker as written in other languages: it claims over HTTP and reports outcomes, and the server decides what follows.
const roleReporter = "reporter"

// A reportScript is a job for reporters.
type reportScript struct{ script }

func (reportScript) Kind() string { return "chaos.report" }

// reportQueue is the queue of these jobs. Engines do not claim from it.
const reportQueue = "reports"

// A reporter runs jobs, one at a time.
type reporter struct {
	spec    childSpec
	journal *journal
	http    *http.Client
	name    string
	claimed int
}

// runReporter runs a reporter until ctx ends.
func runReporter(ctx context.Context, p childSpec, j *journal) error {
	r := &reporter{spec: p, journal: j, http: &http.Client{Transport: newRoundRobin(p.Servers), Timeout: 10 * time.Second}, name: fmt.Sprintf("reporter-%d", p.N)}
	for ctx.Err() == nil {
		leases := r.claim(ctx)
		for _, l := range leases {
			r.work(ctx, l)
		}
		if len(leases) == 0 {
			sleep(ctx, 50*time.Millisecond)
		}
	}
	return nil
}

// ask sends one request and decodes its answer.
func (r *reporter) ask(ctx context.Context, path string, in, out any) error {
	text, err := api.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.spec.Servers[0]+api.Prefix+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := r.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	if err != nil {
		return err
	}
	return api.UnmarshalLoose(text, out)
}

// claim claims up to four jobs. Each claim uses another worker name.
func (r *reporter) claim(ctx context.Context) []api.Lease {
	r.claimed++
	few, from := 4, time.Now().UnixNano()
	var out api.ClaimOut
	err := r.ask(ctx, api.ClaimJobs.Path, api.Claim{Worker: fmt.Sprintf("%s-%d", r.name, r.claimed), Queues: []string{reportQueue}, Limit: &few, Lease: &r.spec.Lease}, &out)
	if err != nil {
		return nil
	}
	var lines []line
	for _, l := range out.Leases {
		lines = append(lines, line{Saw: sawClaim, From: from, Till: time.Now().UnixNano(), Job: l.ID, Token: l.Token, Generation: l.Generation, AsOf: l.AsOf})
	}
	r.journal.write(lines...)
	return out.Leases
}

// work runs the script and reports its outcome until the server answers. It renews the lease first, as a long-running worker does.
func (r *reporter) work(ctx context.Context, l api.Lease) {
	var s script
	if err := json.Unmarshal(l.Args, &s); err != nil {
		return // not a job of this run
	}
	r.journal.write(line{Saw: sawStart, From: time.Now().UnixNano(), Job: l.ID, Token: l.Token, Generation: l.Generation, AsOf: l.AsOf, Do: s.Do})
	var renew api.RenewIn
	var bad api.RenewOut
	renew.Body.Lease = &r.spec.Lease
	renew.Body.Renewals = []api.Renewal{{Batch: l.Batch, Running: []holdfast.ID{l.ID}}}
	if r.ask(ctx, api.RenewJobs.Path, renew.Body, &bad) == nil && len(bad.Lost) > 0 {
		return
	}
	o, to := r.outcome(ctx, l, s)
	seen := line{Saw: sawIntent, From: time.Now().UnixNano(), Job: l.ID, Token: l.Token, To: to}
	r.journal.write(seen)
	if to == holdfast.Queued { // the policy may also decide that this was the last attempt
		last := seen
		last.To = holdfast.Failed
		r.journal.write(last)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; sleep(ctx, 50*time.Millisecond) {
		var in api.OutcomesIn
		var out api.Answers
		in.Body.Outcomes = []api.Outcome{o}
		if err := r.ask(ctx, api.JobOutcome.Path, in.Body, &out); err != nil || len(out.Answers) != 1 {
			continue
		}
		seen.Saw, seen.Till, seen.Answer = sawAnswer, time.Now().UnixNano(), answerWord(out.Answers[0].Err())
		r.journal.write(seen)
		return
	}
}

// outcome returns the outcome of the attempt and the state that follows unless the policy gives up.
func (r *reporter) outcome(ctx context.Context, l api.Lease, s script) (api.Outcome, holdfast.State) {
	o := api.Outcome{Batch: l.Batch, Job: l.ID, Token: l.Token, Outcome: api.OutcomeComplete}
	switch {
	case s.Do == doSleep:
		sleep(ctx, s.For)
	case s.Do == doFail && l.Failures < s.Times, s.Do == doRefuse:
		o.Outcome, o.Message = api.OutcomeFailed, "the script says so"
		return o, holdfast.Queued
	case s.Do == doPanic && l.Failures < 1:
		o.Outcome, o.Message = api.OutcomeTimedOut, "the script says so"
		return o, holdfast.Queued
	case s.Do == doSnooze && l.Releases < s.Times:
		o.Outcome, o.Snooze = api.OutcomeSnoozed, s.For
		return o, holdfast.Queued
	}
	return o, holdfast.Complete
}
