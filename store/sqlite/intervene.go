package sqlite

import (
	"encoding/json"
	"math"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// A jobState is where a job is, with the facts by which an intervention is judged.
type jobState struct {
	member
	owner, kind, queue    string
	dependency, uniqueKey string
	lane                  int64
	group                 holdfast.ID
	priority              int

	created   int64
	expireAt  int64  // 0: never
	place     string // ready, later, leased or finished
	state     holdfast.State
	discarded bool
	waiting   bool   // for members of its group
	due       int64  // while it is in holdfast_later
	batch     *batch // while it is processing
}

// rule returns the job as the rules see it that decide whether a person may change it.
func (s *jobState) rule() rule.Job {
	j := rule.Job{ID: s.job, State: s.state, Ready: s.place == "ready", Waits: s.waiting, Discarded: s.discarded,
		Tried: s.failures+s.crashes+s.releases > 0}
	if s.expireAt != 0 {
		j.ExpireAt = instant(s.expireAt)
	}
	if s.batch != nil {
		j.Claimed, j.Until = instant(s.batch.claimed), instant(s.batch.expires)
	}
	return j
}

// findJob reads a job and where it is. A job that does not exist and a job of another owner get the same answer.
func (t *tx) findJob(i store.Intervention) (job jobState, err error) {
	job.job = i.Job
	found, err := t.one("read_job", []any{i.Job}, &job.owner, &job.kind, &job.queue, &job.lane, &job.priority, &job.uniqueKey, &job.expireAt, &job.dependency,
		&job.group, &job.created)
	if err != nil {
		return job, err
	}
	if !found || i.Owner != "" && i.Owner != job.owner {
		return job, rule.NoJob(i.Job)
	}
	var state string
	_, err = t.one("find_job_place", []any{i.Job, job.lane, job.priority}, &job.place, &job.token, &job.failures, &job.crashes, &job.releases,
		&job.generation, &state, &job.discarded, &job.waiting, &job.due)
	if job.state = holdfast.State(state); err != nil || job.state == holdfast.Queued {
		return job, err
	}
	leases, err := t.readBatches("find_batches_of_job", i.Job)
	for _, l := range leases {
		if m := l.find(i.Job); m != nil {
			job.member, job.batch, job.place, job.state = *m, l, "leased", holdfast.Processing
		}
	}
	if err == nil && job.place == "" {
		err = rule.NoState(i.Job)
	}
	return job, err
}

// addJobEvent appends an event to the story of a job.
func (t *tx) addJobEvent(i store.Intervention, name string, token, generation int) error {
	return t.addJobChange(i, name, token, generation, nil)
}

// addJobChange appends an event to the story of a job, with the values that it replaced.
func (t *tx) addJobChange(i store.Intervention, name string, token, generation int, was json.RawMessage) error {
	if _, err := t.exec("job_event_add", i.Job, t.now, name, i.Actor, nullIfEmpty(clean(i.Reason)), token, generation, nullIfEmpty(i.Request), nullIfEmpty(string(was))); err != nil {
		return err
	}
	t.emitStoryLine()
	return nil
}

// countAhead counts the ready jobs of a queue that come before a key in the order of claims, up to a thousand.
func (t *tx) countAhead(queue string, k lane.Key) (total int, err error) {
	v := &claimView{read: claimReader{t.session}, now: t.now, lanes: t.lanes, scope: &lane.Scope{Queues: []string{queue}}, onWriter: true}
	if _, _, err := v.findLines(math.MaxInt); err != nil { // probes the lines of this queue: other queues may have many
		return 0, err
	}
	for i := 0; i < len(v.lines) && total < 1000; i++ {
		var n int
		if _, err := t.one("count_ahead", []any{v.lines[i].number, int64(k.Priority), k.Job}, &n); err != nil {
			return 0, err
		}
		total += n
	}
	return min(total, 1000), nil
}
