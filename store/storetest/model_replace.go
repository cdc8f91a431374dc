package storetest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Replacements in the model.

// untouched reports whether a job is queued and was never claimed.
func (r *record) untouched() bool {
	return (r.place == ready || r.place == later || r.place == waiting) && r.Token == 0 && r.Generation == 1
}

// follows reports whether a draft becomes a new job although another job has its unique key.
func (m *model) follows(d holdfast.Draft, holder holdfast.ID) bool {
	r := m.jobs[holder]
	return d.Replace != nil && d.Replace.Follow && !r.untouched() && r.place != finished
}

// change returns a copy of a job's record that may be changed: a refused call or a transaction that is rolled back must not change the original.
func (m *model) change(id holdfast.ID) *record {
	r := *m.jobs[id]
	r.events = slices.Clone(r.events)
	m.jobs[id] = &r
	return &r
}

func (m *model) passKey(from, to holdfast.ID) {
	r := m.change(from)
	r.UniqueKey = ""
	m.tell(r, "key passed", store.Intervention{Actor: "holdfast", Reason: "a draft with its unique key became job " + to.String() + ", which has the key now"})
}

// replace gives the content of a draft to the job that has its key, if the draft asks for it and the job was never claimed.
func (m *model) replace(d holdfast.Draft, holder holdfast.ID) bool {
	if d.Replace == nil || !m.jobs[holder].untouched() {
		return false
	}
	r := m.change(holder)
	was, dependency := m.view(r), r.Dependency
	r.Args, r.Queue, r.Priority, r.Tags, r.MaxAttempts, r.Dependency = d.Args, d.Queue, d.Priority, d.Tags, d.MaxAttempts, d.Dependency
	r.RetryWithin, r.Trace, r.uniqueDone, r.ExpireAt, r.aside = d.RetryWithin, d.Trace, d.UniqueDone, d.ExpireAt, false
	if d.ExpireIn > 0 {
		r.ExpireAt = m.now.Add(d.ExpireIn)
	}
	r.expiry = !r.ExpireAt.IsZero()
	moved := d.Replace.Start && m.moveStart(r, was.DueAt, d)
	changed := store.Edit{Queue: &r.Queue, Priority: &r.Priority, MaxAttempts: &r.MaxAttempts}
	if !reflect.DeepEqual(decode(was.Args), decode(r.Args)) {
		changed.Args = r.Args
	}
	if !slices.Equal(was.Tags, r.Tags) {
		changed.Tags = &r.Tags
	}
	said := editReason(was, changed)
	if dependency != r.Dependency {
		said = strings.TrimPrefix(said+"; dependency replaced", "; ")
	}
	if said == "" {
		return true
	}
	m.tell(r, "replace", store.Intervention{Actor: "holdfast", Reason: "by a draft with its unique key: " + said})
	m.replaced(r, was, moved)
	if dependency != r.Dependency {
		line := &r.events[len(r.events)-1]
		former := map[string]json.RawMessage{}
		_ = json.Unmarshal(line.Was, &former) // nothing, if only the dependency differs
		former["dependency"], _ = json.Marshal(dependency)
		line.Was, _ = json.Marshal(former)
	}
	return true
}

// moveStart gives a job the start time of a draft, within the maximum age, and reports whether it is another time.
func (m *model) moveStart(r *record, was time.Time, d holdfast.Draft) bool {
	due := d.RunAt
	if due.IsZero() {
		due = m.now.Add(d.Delay)
	}
	if latest := r.CreatedAt.Add(d.Replace.MaxAge); d.Replace.MaxAge > 0 && due.After(latest) {
		due = latest
	}
	switch {
	case due.After(m.now) && !due.Equal(was):
		r.due, r.RunAt = due, due
		if r.place == ready {
			r.place = later
		}
	case !due.After(m.now) && was.After(m.now):
		r.due, r.RunAt = m.now, time.Time{}
		if r.place == waiting {
			r.due = time.Time{}
		} else {
			r.place = ready
		}
	default:
		return false
	}
	return true
}
