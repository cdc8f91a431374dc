package statement

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

// A Revision is a job's facts as an edit leaves them, and what the story says about it.
type Revision struct {
	Args        json.RawMessage // nil: as they were
	Queue       string
	Priority    int16
	Tags        []string
	MaxAttempts int
	Said        string // the editor's reason, and what was changed
}

// CheckEdit refuses an edit that cannot be made of any job, naming every problem at once.
func CheckEdit(e *holdfast.Edit) error {
	err := e.Check()
	if !utf8.Valid(e.Patch) {
		err = errors.Join(err, invalid("a patch of the arguments that is not valid UTF-8"))
	}
	return err
}

// Revise finds out what an edit makes of a job, or why it cannot be made: the job is as the store shows it at that moment, under whatever
// keeps it so, and args are its arguments as they are stored.
func Revise(job holdfast.Job, args json.RawMessage, e *holdfast.Edit) (r Revision, err error) {
	switch {
	case job.State == holdfast.Failed && (e.Queue != nil || e.Tags != nil || e.Delay != nil):
		return r, against(job.ID, "is failed: its arguments, priority and attempts can be edited; where and when it waits, only once it is queued again")
	case job.State != holdfast.Queued && job.State != holdfast.Failed:
		return r, against(job.ID, "is %s: only a job that is queued or failed can be edited", job.State)
	case e.Seen != "" && e.Seen != job.Digest():
		return r, against(job.ID, "has changed since it was looked at: look at it again, and edit what is there now")
	}
	r = Revision{Queue: job.Queue, Priority: job.Priority, Tags: job.Tags, MaxAttempts: job.MaxAttempts}
	said := []string{}
	if e.Reason != "" {
		said = append(said, e.Reason)
	}
	if e.Patch != nil {
		if !json.Valid(args) {
			return r, against(job.ID, "has arguments that cannot be read, so they cannot be patched: run the doctor")
		}
		if r.Args = Merge(args, e.Patch); len(r.Args) > holdfast.MaxArgs {
			return r, against(job.ID, "would have patched arguments of %d bytes: the limit is %d", len(r.Args), holdfast.MaxArgs)
		}
		said = append(said, "arguments patched")
	}
	if e.Queue != nil && *e.Queue != job.Queue {
		r.Queue, said = *e.Queue, append(said, fmt.Sprintf("moved from queue %s to %s", job.Queue, *e.Queue))
	}
	if e.Priority != nil && *e.Priority != job.Priority {
		r.Priority, said = *e.Priority, append(said, fmt.Sprintf("priority %d to %d", job.Priority, *e.Priority))
	}
	if e.Tags != nil {
		r.Tags, said = *e.Tags, append(said, fmt.Sprintf("%d tags instead of %d", len(*e.Tags), len(job.Tags)))
	}
	if e.MaxAttempts != nil && *e.MaxAttempts != job.MaxAttempts {
		r.MaxAttempts, said = *e.MaxAttempts, append(said, fmt.Sprintf("max attempts %d to %d", job.MaxAttempts, *e.MaxAttempts))
	}
	if e.Delay != nil {
		said = append(said, fmt.Sprintf("due in %v", e.Delay.Truncate(time.Microsecond)))
	}
	r.Said = strings.Join(said, "; ")
	return r, nil
}

func against(job holdfast.ID, format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.ErrConflict, Job: job, Message: fmt.Sprintf("job %v ", job) + fmt.Sprintf(format, args...)}
}
