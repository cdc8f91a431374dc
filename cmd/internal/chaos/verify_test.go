package chaos

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A jobRun is the evidence of a run with one job. A test changes it to violate a guarantee.
type jobRun struct {
	id  holdfast.ID
	job holdfast.Job
	evidence
}

func validRun() *jobRun {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	id := holdfast.NewID()
	args, _ := json.Marshal(script{Do: doNothing})
	t := &jobRun{id: id, job: holdfast.Job{ID: id, Kind: "chaos", Args: args, State: holdfast.Complete, Token: 2, Generation: 1, CreatedAt: at, FinishedAt: at.Add(9 * time.Second)}}
	t.histories = map[holdfast.ID]store.History{id: {Attempts: []store.Attempt{
		{Job: id, Token: 1, Generation: 1, To: holdfast.Queued, Charge: store.ChargeRelease, EndedAt: at.Add(2 * time.Second), DueAt: at.Add(3 * time.Second)},
	}}}
	t.see(line{Saw: sawReceipt, From: 1, Till: 2, Delay: time.Second})
	t.see(line{Saw: sawClaim, From: 3, Till: 4, Token: 1, Generation: 1, AsOf: at.Add(time.Second)})
	t.settle(line{From: 5, Till: 6, Token: 1, To: holdfast.Queued, Delay: time.Second})
	t.see(line{Saw: sawClaim, From: 7, Till: 8, Token: 2, Generation: 1, AsOf: at.Add(3 * time.Second)})
	t.settle(line{From: 9, Till: 10, Token: 2, To: holdfast.Complete})
	return t
}

func (t *jobRun) see(l line) {
	l.Job = t.id
	t.lines = append(t.lines, l)
}

// settle adds the lines of a settlement that was sent and applied.
func (t *jobRun) settle(l line) {
	l.Saw = sawIntent
	t.see(l)
	l.Saw, l.Answer = sawAnswer, applied
	t.see(l)
}

func (t *jobRun) verdict() verdict {
	t.jobs = map[holdfast.ID]holdfast.Job{}
	if !t.job.ID.IsZero() {
		t.jobs[t.id] = t.job
	}
	return verifyEvidence(t.evidence)
}

// TestVerificationFindsEveryViolation changes a valid run in one way at a time. If the verification missed a violation, every chaos run would look clean.
func TestVerificationFindsEveryViolation(t *testing.T) {
	if v := validRun().verdict(); v.lost+v.duplicated+v.stale+v.early+v.exceeded != 0 {
		t.Fatalf("a valid run has violations: %v", v.violations)
	}
	violations := []struct {
		name   string
		change func(*jobRun)
		count  func(verdict) int
	}{
		{"an acknowledged job is gone", func(c *jobRun) { c.job.ID = holdfast.ID{} }, lost},
		{"a job never ended", func(c *jobRun) { c.job.State = holdfast.Processing }, lost},
		{"a job whose script completes has failed", func(c *jobRun) { c.job.State = holdfast.Failed }, lost},
		{"an acknowledged cancellation was lost", func(c *jobRun) { c.see(line{Saw: sawCancel, Answer: applied}) }, lost},
		{"an applied settlement has no record", func(c *jobRun) { c.histories = nil }, lost},
		{"an acknowledged manual retry was lost", func(c *jobRun) {
			c.see(line{Saw: sawRetry, Answer: unknown})
			c.see(line{Saw: sawRetry, Answer: applied})
		}, lost},
		{"a limit was exceeded", func(c *jobRun) {
			for n := range limitedMax + 1 {
				id := holdfast.NewID()
				c.lines = append(c.lines, line{Saw: sawClaim, Job: id, Till: int64(10 + n), Token: 1, Dependency: limitedDependency}, line{Saw: sawIntent, Job: id, From: 20, Token: 1, To: holdfast.Complete})
			}
		}, func(v verdict) int { return v.exceeded }},
		{"a job ended twice", func(c *jobRun) { c.settle(line{From: 5, Token: 1, To: holdfast.Complete}) }, duplicated},
		{"a job was claimed twice with one token", func(c *jobRun) {
			c.see(line{Saw: sawClaim, Token: 2, Generation: 1, AsOf: c.job.FinishedAt})
		}, duplicated},
		{"the store shows another terminal transition", func(c *jobRun) {
			c.job.Token = 3
			c.see(line{Saw: sawIntent, Token: 3, To: holdfast.Complete})
		}, duplicated},
		{"a stale settlement was applied", func(c *jobRun) { c.settle(line{From: 9, Till: 10, Token: 1, To: holdfast.Failed}) }, stale},
		{"a terminal transition that no process sent", func(c *jobRun) { c.job.Token = 7 }, stale},
		{"a delayed job was claimed early", func(c *jobRun) { c.lines[0].Delay = 2 * time.Second }, early},
		{"a retry was claimed early", func(c *jobRun) {
			c.histories[c.id].Attempts[0].DueAt = c.job.CreatedAt.Add(4 * time.Second)
		}, early},
		{"a retry waited less than requested", func(c *jobRun) { c.lines[3].Delay = time.Minute }, early},
	}
	for _, violation := range violations {
		t.Run(violation.name, func(t *testing.T) {
			c := validRun()
			violation.change(c)
			if v := c.verdict(); violation.count(v) == 0 {
				t.Errorf("it was not found: %+v", v)
			}
		})
	}
}

func lost(v verdict) int       { return v.lost }
func duplicated(v verdict) int { return v.duplicated }
func stale(v verdict) int      { return v.stale }
func early(v verdict) int      { return v.early }

func TestVerificationFindsAKeyHeldTwice(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	jobs := map[holdfast.ID]holdfast.Job{}
	for i := range 2 {
		id := holdfast.NewID()
		jobs[id] = holdfast.Job{ID: id, Kind: "chaos", UniqueKey: "k", Generation: 1, CreatedAt: at.Add(time.Duration(i) * time.Second), FinishedAt: at.Add(5 * time.Second)}
	}
	var v verdict
	if v.keysHeldOnce(jobs); v.duplicated != 1 {
		t.Errorf("two jobs with one key at the same time were counted %d times", v.duplicated)
	}
}
