package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A Difference is one value that an edit or a redrive changed in a job. Credentials are hidden, see [failure.Redact].
type Difference struct {
	Path string `json:"path"`           // args.amount, args.items[2], queue, priority, tags, max_attempts, due_at
	From string `json:"from,omitempty"` // as JSON; empty: the value was added
	To   string `json:"to,omitempty"`   // as JSON; empty: the value was removed, or is no longer known (due_at)
}

// Limits of the differences of one story line.
const (
	maxDifferences = 50
	maxValueBytes  = 200 // bytes of one value
	hiddenValue    = `"***"`
)

// String returns the difference as one line.
func (d Difference) String() string {
	switch {
	case d.From == "":
		return d.Path + ": added " + d.To
	case d.To == "":
		return d.Path + ": was " + d.From
	}
	return d.Path + ": " + d.From + " → " + d.To
}

// differences returns what each event of a history changed. The new value of a change is the old value of the next change,
// or the current value of the job.
func differences(h store.History) map[int][]Difference {
	found := map[int][]Difference{}
	now := valuesOf(h.Job)
	for n := len(h.Events) - 1; n >= 0; n-- {
		var was map[string]json.RawMessage
		if len(h.Events[n].Was) == 0 || json.Unmarshal(h.Events[n].Was, &was) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(was)) {
			found[n] = append(found[n], compareJSON(name, was[name], now[name], false)...)
			if name != "due_at" { // its new value is not known, because attempts change it too
				now[name] = was[name]
			}
		}
		if len(found[n]) > maxDifferences {
			found[n] = found[n][:maxDifferences]
		}
	}
	return found
}

// valuesOf returns the values of a job that an edit can change, except due_at, which attempts change too.
func valuesOf(job holdfast.Job) map[string]json.RawMessage {
	values := map[string]json.RawMessage{"args": job.Args}
	for name, value := range map[string]any{"queue": job.Queue, "priority": job.Priority, "tags": slices.Concat([]string{}, job.Tags), "max_attempts": job.MaxAttempts} {
		values[name], _ = json.Marshal(value) // texts and numbers always marshal
	}
	return values
}

// compareJSON descends into objects, and into arrays of equal length, and returns the values that differ. Values below a
// secret are hidden.
func compareJSON(path string, from, to json.RawMessage, secret bool) []Difference {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(from, &before) == nil && json.Unmarshal(to, &after) == nil && before != nil && after != nil {
		names := slices.Collect(maps.Keys(before))
		for name := range after {
			if _, both := before[name]; !both {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		var found []Difference
		for _, name := range names {
			found = append(found, compareJSON(path+"."+name, before[name], after[name], secret || failure.SecretName(name))...)
		}
		return found
	}
	var was, is []json.RawMessage
	if json.Unmarshal(from, &was) == nil && json.Unmarshal(to, &is) == nil && len(was) == len(is) {
		var found []Difference
		for n := range was {
			found = append(found, compareJSON(path+"["+strconv.Itoa(n)+"]", was[n], is[n], secret)...)
		}
		return found
	}
	if bytes.Equal(compactJSON(from), compactJSON(to)) {
		return nil
	}
	return []Difference{{path, shortJSON(from, secret), shortJSON(to, secret)}}
}

func compactJSON(value json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return value
	}
	return out.Bytes()
}

// shortJSON formats a value for a line; empty: there is none.
func shortJSON(value json.RawMessage, secret bool) string {
	if len(value) == 0 {
		return ""
	}
	if secret {
		return hiddenValue
	}
	text := string(failure.Redact(value))
	if len(text) > maxValueBytes {
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxValueBytes], ""), len(text))
	}
	return text
}

// firstQueue returns the queue in which a job was enqueued: the value that the first move replaced.
func firstQueue(h store.History) string {
	for _, e := range h.Events {
		var was struct {
			Queue *string `json:"queue"`
		}
		if len(e.Was) > 0 && json.Unmarshal(e.Was, &was) == nil && was.Queue != nil {
			return *was.Queue
		}
	}
	return h.Job.Queue
}
