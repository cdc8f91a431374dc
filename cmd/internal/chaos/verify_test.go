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

// workflowRun is the evidence of a run with two jobs in a line, a job whose content was replaced, and a small group, of which one member has enqueued a job.
type workflowRun struct {
	evidence
	first, second, replaced, child holdfast.ID
	group                          holdfast.ID
}

func validWorkflow() *workflowRun {
	r := &workflowRun{evidence: evidence{jobs: map[holdfast.ID]holdfast.Job{}, groups: map[holdfast.ID]smallGroup{}}, group: holdfast.NewID()}
	r.first, r.second = r.add(script{Do: doNothing}, 1, 10), r.add(script{Do: doNothing}, 2, 20)
	r.change(r.first, func(job *holdfast.Job) { job.Order = "k" })
	r.change(r.second, func(job *holdfast.Job) { job.Order = "k" })
	r.replaced = r.add(script{Do: doNothing, Content: "new"}, 3, 30)
	for i := range r.lines {
		if l := &r.lines[i]; l.Job == r.replaced && l.Saw == sawReceipt {
			l.Content = "old"
		} else if l.Job == r.replaced && l.Saw == sawStart {
			l.Content = "new"
		}
	}
	r.lines = append(r.lines, line{Saw: sawReceipt, From: 5, Till: 6, Job: r.replaced, Existing: true, Replaced: true, Content: "new"})
	steps := map[string]holdfast.ID{}
	for i, step := range []string{stepCharge, stepShip, stepRefund, stepReport} {
		steps[step] = r.add(script{Do: doNothing, Next: countIf(step == stepCharge)}, 4, int64(40+10*i))
	}
	r.change(steps[stepRefund], func(job *holdfast.Job) { job.State, job.Skipped = holdfast.Cancelled, true })
	r.child = r.add(script{Do: doNothing, Parent: steps[stepCharge]}, 4, 90)
	r.groups[r.group] = smallGroup{steps: steps, events: []store.Event{{Name: "ready"}},
		Group: holdfast.Group{State: holdfast.GroupReady, Members: holdfast.Members{Total: 5, Complete: 4, Skipped: 1}}}
	return r
}

// add adds a job that was enqueued at one time, and claimed and completed at a later one.
func (r *workflowRun) add(s script, enqueued, claimed int64) holdfast.ID {
	id, at := holdfast.NewID(), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	args, _ := json.Marshal(s)
	asOf := at.Add(time.Duration(claimed) * time.Second)
	r.jobs[id] = holdfast.Job{ID: id, Kind: "chaos", Args: args, State: holdfast.Complete, Token: 1, Generation: 1, CreatedAt: at, FinishedAt: asOf.Add(time.Second)}
	done := line{Saw: sawIntent, From: claimed + 2, Job: id, Token: 1, To: holdfast.Complete}
	r.lines = append(r.lines, line{Saw: sawReceipt, From: enqueued, Till: enqueued, Job: id}, line{Saw: sawClaim, From: claimed, Till: claimed + 1, Job: id, Token: 1, Generation: 1, AsOf: asOf},
		line{Saw: sawStart, From: claimed + 1, Job: id, Token: 1, Generation: 1}, done)
	done.Saw, done.Answer = sawAnswer, applied
	r.lines = append(r.lines, done)
	return id
}

func (r *workflowRun) change(id holdfast.ID, how func(*holdfast.Job)) {
	job := r.jobs[id]
	how(&job)
	r.jobs[id] = job
}

// changeLine changes the first line of a job of one type.
func (r *workflowRun) changeLine(id holdfast.ID, saw string, how func(*line)) {
	for i := range r.lines {
		if r.lines[i].Job == id && r.lines[i].Saw == saw {
			how(&r.lines[i])
			return
		}
	}
}

func (r *workflowRun) changeGroup(how func(*smallGroup)) {
	g := r.groups[r.group]
	how(&g)
	r.groups[r.group] = g
}

func TestVerificationFindsEveryViolationOfLinesReplacementsGroupsAndEnqueuedJobs(t *testing.T) {
	if v := verifyEvidence(validWorkflow().evidence); v.lost+v.duplicated+v.stale+v.early+v.exceeded != 0 {
		t.Fatalf("a valid run has violations: %v", v.violations)
	}
	exceeded := func(v verdict) int { return v.exceeded }
	for _, violation := range []struct {
		name   string
		change func(*workflowRun)
		count  func(verdict) int
	}{
		{"two jobs of a line were leased at the same time", func(r *workflowRun) {
			r.changeLine(r.second, sawClaim, func(l *line) { l.From, l.Till = 10, 11 })
		}, exceeded},
		{"a job was claimed before the one ahead of it in its line had ended", func(r *workflowRun) {
			r.changeLine(r.second, sawClaim, func(l *line) { l.AsOf = l.AsOf.Add(-10 * time.Second) })
		}, early},
		{"a job was claimed before one that the same call enqueued before it", func(r *workflowRun) {
			r.changeLine(r.first, sawReceipt, func(l *line) { l.From, l.Till = 2, 2 })
			r.changeLine(r.first, sawClaim, func(l *line) { l.AsOf = l.AsOf.Add(time.Minute) })
			r.change(r.first, func(job *holdfast.Job) { job.FinishedAt = job.FinishedAt.Add(time.Minute) })
		}, early},
		{"a job ran with another content than the one shown", func(r *workflowRun) {
			r.changeLine(r.replaced, sawStart, func(l *line) { l.Content = "old" })
		}, lost},
		{"a job kept a content that was replaced", func(r *workflowRun) {
			args, _ := json.Marshal(script{Do: doNothing, Content: "old"})
			r.change(r.replaced, func(job *holdfast.Job) { job.Args = args })
			r.changeLine(r.replaced, sawStart, func(l *line) { l.Content = "old" })
		}, lost},
		{"a job was replaced while it was processing", func(r *workflowRun) {
			for i := range r.lines {
				if r.lines[i].Replaced {
					r.lines[i].From, r.lines[i].Till = 32, 33
				}
			}
		}, lost},
		{"a job that a completion enqueued is missing", func(r *workflowRun) { delete(r.jobs, r.child) }, lost},
		{"a completion enqueued twice", func(r *workflowRun) {
			again := r.jobs[r.child]
			again.ID = holdfast.NewID()
			r.jobs[again.ID] = again
		}, duplicated},
		{"a job that is not complete has enqueued another", func(r *workflowRun) {
			r.change(r.groups[r.group].steps[stepCharge], func(job *holdfast.Job) { job.State = holdfast.Cancelled })
		}, duplicated},
		{"a compensation ran that was not needed", func(r *workflowRun) {
			r.change(r.groups[r.group].steps[stepRefund], func(job *holdfast.Job) { job.State, job.Skipped = holdfast.Complete, false })
		}, lost},
		{"a skipped member made its group partial", func(r *workflowRun) {
			r.changeGroup(func(g *smallGroup) { g.State, g.Members.Skipped, g.Members.Cancelled = holdfast.GroupPartial, 0, 1 })
		}, lost},
		{"a group was settled twice", func(r *workflowRun) {
			r.changeGroup(func(g *smallGroup) { g.events = append(g.events, g.events...) })
		}, duplicated},
	} {
		t.Run(violation.name, func(t *testing.T) {
			r := validWorkflow()
			violation.change(r)
			if v := verifyEvidence(r.evidence); violation.count(v) == 0 {
				t.Errorf("it was not found: %+v", v)
			}
		})
	}
}

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
