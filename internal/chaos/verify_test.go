package chaos

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A case is a run of one job as it should be, for a test to spoil.
type trial struct {
	id  holdfast.ID
	job holdfast.Job
	evidence
}

func honestTrial() *trial {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	id := holdfast.NewID()
	args, _ := json.Marshal(script{Do: doNothing})
	t := &trial{id: id, job: holdfast.Job{ID: id, Kind: "chaos", Args: args, State: holdfast.Complete, Token: 2, Generation: 1, CreatedAt: at, FinishedAt: at.Add(9 * time.Second)}}
	t.histories = map[holdfast.ID]holdfast.History{id: {Attempts: []holdfast.Attempt{
		{Job: id, Token: 1, Generation: 1, To: holdfast.Queued, Charge: holdfast.ChargeInterrupt, EndedAt: at.Add(2 * time.Second), DueAt: at.Add(3 * time.Second)},
	}}}
	t.see(line{Saw: sawReceipt, From: 1, Till: 2, Delay: time.Second})
	t.see(line{Saw: sawClaim, From: 3, Till: 4, Token: 1, Generation: 1, AsOf: at.Add(time.Second)})
	t.settle(line{From: 5, Till: 6, Token: 1, To: holdfast.Queued, Delay: time.Second})
	t.see(line{Saw: sawClaim, From: 7, Till: 8, Token: 2, Generation: 1, AsOf: at.Add(3 * time.Second)})
	t.settle(line{From: 9, Till: 10, Token: 2, To: holdfast.Complete})
	return t
}

func (t *trial) see(l line) {
	l.Job = t.id
	t.lines = append(t.lines, l)
}

// settle sees a settlement sent and applied.
func (t *trial) settle(l line) {
	l.Saw = sawIntent
	t.see(l)
	l.Saw, l.Answer = sawAnswer, applied
	t.see(l)
}

func (t *trial) verdict() verdict {
	t.jobs = map[holdfast.ID]holdfast.Job{}
	if !t.job.ID.IsZero() {
		t.jobs[t.id] = t.job
	}
	return judge(t.evidence)
}

// TestTheJudgeSeesEveryCrime spoils an honest run in one way at a time: a judge that is blind to it would make every
// storm look clean.
func TestTheJudgeSeesEveryCrime(t *testing.T) {
	if v := honestTrial().verdict(); v.lost+v.duplicated+v.stale+v.early+v.exceeded != 0 {
		t.Fatalf("an honest run was accused: %v", v.troubles)
	}
	crimes := []struct {
		name  string
		spoil func(*trial)
		seen  func(verdict) int
	}{
		{"an acknowledged job is gone", func(c *trial) { c.job.ID = holdfast.ID{} }, lost},
		{"a job never ended", func(c *trial) { c.job.State = holdfast.Processing }, lost},
		{"a job that works has failed", func(c *trial) { c.job.State = holdfast.Failed }, lost},
		{"a granted cancellation was forgotten", func(c *trial) { c.see(line{Saw: sawCancel, Answer: applied}) }, lost},
		{"an applied settlement left no record", func(c *trial) { c.histories = nil }, lost},
		{"a manual retry was forgotten", func(c *trial) {
			c.see(line{Saw: sawRetry, Answer: unknown})
			c.see(line{Saw: sawRetry, Answer: applied})
		}, lost},
		{"a limit was exceeded", func(c *trial) {
			for n := range scarceMost + 1 {
				id := holdfast.NewID()
				c.lines = append(c.lines, line{Saw: sawClaim, Job: id, Till: int64(10 + n), Token: 1, Dependency: scarce}, line{Saw: sawIntent, Job: id, From: 20, Token: 1, To: holdfast.Complete})
			}
		}, func(v verdict) int { return v.exceeded }},
		{"a job ended twice", func(c *trial) { c.settle(line{From: 5, Token: 1, To: holdfast.Complete}) }, duplicated},
		{"a job was handed out twice under one token", func(c *trial) {
			c.see(line{Saw: sawClaim, Token: 2, Generation: 1, AsOf: c.job.FinishedAt})
		}, duplicated},
		{"the store shows another end", func(c *trial) {
			c.job.Token = 3
			c.see(line{Saw: sawIntent, Token: 3, To: holdfast.Complete})
		}, duplicated},
		{"a stale settlement was applied", func(c *trial) { c.settle(line{From: 9, Till: 10, Token: 1, To: holdfast.Failed}) }, stale},
		{"an end nobody asked for", func(c *trial) { c.job.Token = 7 }, stale},
		{"a delayed job was handed out early", func(c *trial) { c.lines[0].Delay = 2 * time.Second }, early},
		{"a retry was handed out early", func(c *trial) {
			c.histories[c.id].Attempts[0].DueAt = c.job.CreatedAt.Add(4 * time.Second)
		}, early},
		{"a retry waited less than was asked", func(c *trial) { c.lines[3].Delay = time.Minute }, early},
	}
	for _, crime := range crimes {
		t.Run(crime.name, func(t *testing.T) {
			c := honestTrial()
			crime.spoil(c)
			if v := c.verdict(); crime.seen(v) == 0 {
				t.Errorf("it was not seen: %+v", v)
			}
		})
	}
}

func lost(v verdict) int       { return v.lost }
func duplicated(v verdict) int { return v.duplicated }
func stale(v verdict) int      { return v.stale }
func early(v verdict) int      { return v.early }

func TestTheJudgeSeesAKeyHeldTwice(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	jobs := map[holdfast.ID]holdfast.Job{}
	for i := range 2 {
		id := holdfast.NewID()
		jobs[id] = holdfast.Job{ID: id, Kind: "chaos", UniqueKey: "k", Generation: 1, CreatedAt: at.Add(time.Duration(i) * time.Second), FinishedAt: at.Add(5 * time.Second)}
	}
	var v verdict
	if v.keysHeldOnce(jobs); v.duplicated != 1 {
		t.Errorf("two jobs with one key at once were counted %d times", v.duplicated)
	}
}
