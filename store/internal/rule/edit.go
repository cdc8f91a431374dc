package rule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// A Revision is a job's facts after an edit or a redrive, and the reason and former values for its event.
type Revision struct {
	Args        json.RawMessage // nil: unchanged
	Queue       string
	Priority    int16
	Tags        []string
	MaxAttempts int
	Reason      string          // of the event: the operator's reason and a summary of the changes
	Was         json.RawMessage // of the event: the replaced values; nil if there are none
}

// Edit returns what an edit makes of a job, or why it is refused. job is the current job, read under locks that keep it
// unchanged, and args are its stored arguments.
func Edit(job *holdfast.Job, args json.RawMessage, e *store.Edit) (r Revision, err error) {
	switch {
	case job.State == holdfast.Failed && (e.Queue != nil || e.Tags != nil || e.Delay != nil):
		return r, conflict(job.ID, "is failed: its arguments, priority and attempts can be edited; queue, tags and start time only after it is queued again")
	case job.State != holdfast.Queued && job.State != holdfast.Failed:
		return r, conflict(job.ID, "is %s: only a job that is queued or failed can be edited", job.State)
	case e.IfDigest != "" && e.IfDigest != job.Digest():
		return r, conflict(job.ID, "has changed since it was read: read it again and repeat the edit")
	case (e.Patch != nil || e.Args != nil || e.Queue != nil) && (&holdfast.Draft{Kind: job.Kind, Queue: job.Queue, Owner: job.Owner}).Reserved() != nil:
		return r, conflict(job.ID, "is a delivery: its content and its queue cannot be changed")
	}
	r = Revision{Queue: job.Queue, Priority: job.Priority, Tags: job.Tags, MaxAttempts: job.MaxAttempts}
	var summary []string
	if e.Reason != "" {
		summary = append(summary, e.Reason)
	}
	var was former
	if e.Args != nil {
		if !json.Valid(args) {
			return r, conflict(job.ID, "has arguments that cannot be read, so they cannot be replaced: run holdfast doctor")
		}
		r.Args, summary = e.Args, append(summary, "arguments replaced")
	}
	if e.Patch != nil {
		if r.Args, err = patch(job.ID, args, e.Patch); err != nil {
			return r, err
		}
		summary = append(summary, "arguments patched")
	}
	if r.Args != nil && differ(r.Args, args) {
		was.add("args", args)
	}
	if e.Queue != nil && *e.Queue != job.Queue {
		was.value("queue", job.Queue)
		r.Queue, summary = *e.Queue, append(summary, moved(job.Queue, *e.Queue))
	}
	if e.Priority != nil && *e.Priority != job.Priority {
		was.value("priority", job.Priority)
		r.Priority, summary = *e.Priority, append(summary, fmt.Sprintf("priority %d to %d", job.Priority, *e.Priority))
	}
	if e.Tags != nil && !slices.Equal(*e.Tags, job.Tags) {
		was.value("tags", slices.Concat([]string{}, job.Tags))
	}
	if e.Tags != nil {
		r.Tags, summary = *e.Tags, append(summary, fmt.Sprintf("%d tags instead of %d", len(*e.Tags), len(job.Tags)))
	}
	if e.MaxAttempts != nil && *e.MaxAttempts != job.MaxAttempts {
		was.value("max_attempts", job.MaxAttempts)
		r.MaxAttempts, summary = *e.MaxAttempts, append(summary, fmt.Sprintf("max attempts %d to %d", job.MaxAttempts, *e.MaxAttempts))
	}
	if e.Delay != nil {
		was.value("due_at", job.DueAt.UTC())
		summary = append(summary, fmt.Sprintf("due in %v", e.Delay.Truncate(time.Microsecond)))
	}
	r.Reason, r.Was = strings.Join(summary, "; "), was.object()
	return r, nil
}

// Redrive returns what a redrive makes of a job in a queue, or why it cannot take the job. args are needed only if they are
// patched. A discard changes no facts. A job that is not discarded also needs its unique key, see [KeyHeld].
func Redrive(j Job, queue string, args json.RawMessage, r *store.Redrive, now time.Time) (v Revision, err error) {
	if !j.DeadLetter() {
		return v, conflict(j.ID, "is not a dead letter: leave it out")
	}
	v.Queue, v.Reason = queue, RedriveReason(r)
	if r.Discard {
		return v, nil
	}
	if err := InTime(j, now); err != nil {
		return v, err
	}
	if (r.Patch != nil || r.Queue != "") && (&holdfast.Draft{Queue: queue}).Reserved() != nil {
		return v, conflict(j.ID, "is a delivery: its content and its queue cannot be changed")
	}
	var was former
	if r.Patch != nil {
		if v.Args, err = patch(j.ID, args, r.Patch); err != nil {
			return v, err
		}
		if differ(v.Args, args) {
			was.add("args", args)
		}
		v.Reason += "; arguments patched"
	}
	if r.Queue != "" && r.Queue != queue {
		was.value("queue", queue)
		v.Queue = r.Queue
		v.Reason += "; " + moved(queue, r.Queue)
	}
	v.Was = was.object()
	return v, nil
}

// RedriveReason returns the reason of a redrive's events, without the changes to a single job.
func RedriveReason(r *store.Redrive) string {
	if r.Reason == "" {
		return r.ID.String()
	}
	return r.ID.String() + ": " + r.Reason
}

// differ reports whether two JSON texts differ in more than white space.
func differ(a, b json.RawMessage) bool {
	var one, other bytes.Buffer
	if json.Compact(&one, a) != nil || json.Compact(&other, b) != nil {
		return true
	}
	return !bytes.Equal(one.Bytes(), other.Bytes())
}

// former builds the JSON object of the values that an edit replaces. Arguments are kept byte for byte.
type former []byte

func (f *former) add(name string, value []byte) {
	*f = fmt.Appendf(*f, ",%q:%s", name, value)
}

func (f *former) value(name string, value any) {
	text, _ := json.Marshal(value) // texts, numbers and times always marshal
	f.add(name, text)
}

func (f former) object() json.RawMessage {
	if len(f) == 0 {
		return nil
	}
	return append(append([]byte{'{'}, f[1:]...), '}')
}

// patch applies a merge patch to stored arguments.
func patch(job holdfast.ID, args, change json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(args) {
		return nil, conflict(job, "has arguments that cannot be read, so they cannot be patched: run holdfast doctor")
	}
	patched := Merge(args, change)
	if len(patched) > check.MaxArgs {
		return nil, conflict(job, "would have patched arguments of %d bytes: the limit is %d", len(patched), check.MaxArgs)
	}
	return patched, nil
}

func moved(from, to string) string { return fmt.Sprintf("moved from queue %s to %s", from, to) }
