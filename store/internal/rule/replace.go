package rule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Replacement is what a draft makes of the queued job that has its unique key.
type Replacement struct {
	Moved    bool      // its start time is another one than before
	Due      time.Time // its start time, if moved
	ExpireAt time.Time // zero: never
	Reason   string    // of the event
	Was      []byte    // of the event: the replaced values as JSON; nil if the content is the same, and there is no event then
}

// ReplaceEvent is the name of the event that a replacement adds to the job's story.
const ReplaceEvent = "replace"

// Replace returns what a draft makes of a queued job that was never claimed. job has the facts of the job and when it is due. Only a change of the content is an
// event: a job that is put off a thousand times has a short story.
func Replace(job *holdfast.Job, d *holdfast.Draft, now time.Time) (r Replacement) {
	if d.Replace.Start {
		if r.Due = d.RunAt; r.Due.IsZero() {
			r.Due = now.Add(d.Delay)
		}
		if latest := job.CreatedAt.Add(d.Replace.MaxAge); d.Replace.MaxAge > 0 && r.Due.After(latest) {
			r.Due = latest
		}
		r.Due = r.Due.Truncate(time.Microsecond)
		r.Moved = r.Due.After(now) && !r.Due.Equal(job.DueAt) || !r.Due.After(now) && job.DueAt.After(now)
	}
	if r.ExpireAt = d.ExpireAt; d.ExpireIn > 0 {
		r.ExpireAt = now.Add(d.ExpireIn)
	}
	var was former
	var summary []string
	if differ(d.Args, job.Args) {
		if json.Valid(job.Args) {
			was.add("args", job.Args)
		} else { // damaged
			was.value("args", string(job.Args))
		}
		summary = append(summary, "arguments replaced")
	}
	if d.Queue != job.Queue {
		was.value("queue", job.Queue)
		summary = append(summary, moved(job.Queue, d.Queue))
	}
	if d.Priority != job.Priority {
		was.value("priority", job.Priority)
		summary = append(summary, fmt.Sprintf("priority %d to %d", job.Priority, d.Priority))
	}
	if !slices.Equal(d.Tags, job.Tags) {
		was.value("tags", slices.Concat([]string{}, job.Tags))
		summary = append(summary, fmt.Sprintf("%d tags instead of %d", len(d.Tags), len(job.Tags)))
	}
	if d.MaxAttempts != job.MaxAttempts {
		was.value("max_attempts", job.MaxAttempts)
		summary = append(summary, fmt.Sprintf("max attempts %d to %d", job.MaxAttempts, d.MaxAttempts))
	}
	if d.Dependency != job.Dependency {
		was.value("dependency", job.Dependency)
		summary = append(summary, "dependency replaced")
	}
	if was == nil {
		return r
	}
	if r.Moved {
		was.value("due_at", job.DueAt.UTC())
	}
	r.Reason, r.Was = "by a draft with its unique key: "+strings.Join(summary, "; "), was.object()
	return r
}

// KeyPassed is the reason of the event of a job whose unique key passes to a new job.
func KeyPassed(to holdfast.ID) string {
	return fmt.Sprintf("a draft with its unique key became job %v, which has the key now", to)
}

// KeyPassedEvent is the name of that event.
const KeyPassedEvent = "key passed"
