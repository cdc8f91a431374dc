package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Records, redrives, error groups and deadlines in the model.

type recordName struct{ namespace, name string }

// keep applies a change, all or none.
func (m *model) keep(c store.Change) error {
	for i := range c.Place {
		if err := c.Place[i].Check(); err != nil {
			return err
		}
	}
	for _, r := range c.Records {
		if m.records[recordName{r.Namespace, r.Name}].Version != r.Version {
			return refuse(holdfast.ErrConflict, holdfast.ID{}, textRecord, r.Namespace, r.Name)
		}
	}
	for _, r := range c.Records {
		name := recordName{r.Namespace, r.Name}
		if r.Body == nil {
			delete(m.records, name)
			continue
		}
		m.records[name] = store.Record{Namespace: r.Namespace, Name: r.Name, Version: r.Version + 1, Body: r.Body, KeptAt: m.now}
	}
	for _, h := range c.Place {
		m.place(h)
	}
	for _, h := range c.Lift {
		delete(m.holds, nameOf(h))
	}
	for _, d := range c.Deposits {
		if h := m.holds[nameOf(d.Hold)]; h != nil && h.Rate != nil {
			h.fill(h.level(m.now)+d.Tokens, m.now)
		}
	}
	for _, e := range c.Events {
		if r := m.jobs[e.Job]; r != nil {
			m.tell(r, e.Name, store.Intervention{Actor: e.Actor, Reason: e.Reason})
		} else {
			m.addStory(e.Subject, e.Name, e.Actor, e.Reason)
		}
	}
	return nil
}

type redriveOf struct{ redrive, job holdfast.ID }

// A redriven is a job that a redrive took.
type redriven struct {
	generation int
	outcome    string // empty: not known to have ended
}

// loose is the prefix of an event's reason of which only a part is guaranteed.
const loose = "(in part) "

func (m *model) redrive(step store.Redrive) ([]error, error) {
	if err := step.Check(); err != nil {
		return nil, err
	}
	var answers []error
	for _, id := range step.Jobs {
		answers = append(answers, m.redriveOne(step, id))
	}
	return answers, nil
}

func (m *model) redriveOne(step store.Redrive, id holdfast.ID) error {
	of := redriveOf{step.ID, id}
	r := m.jobs[id]
	switch {
	case r == nil:
		return refuse(holdfast.ErrNotFound, holdfast.ID{}, textNoJob, id)
	case m.redriven[of] != nil:
		return nil
	case r.place != finished || r.state != holdfast.Failed || r.discarded:
		return refuseJob(id, textNoDeadLetter)
	}
	i := store.Intervention{Job: id, Actor: step.Actor, Reason: step.ID.String() + ": " + step.Reason}
	if step.Discard {
		r.discarded = true
		m.leaveLine(r)
		m.redriven[of] = &redriven{r.Generation, "discarded"}
		m.tell(r, "discard", i)
		return nil
	}
	if m.expired(r) {
		return refuseJob(id, textExpired)
	}
	if err := m.claimKey(r); err != nil {
		return err
	}
	said, was := i.Reason, m.view(r)
	if step.Patch != nil {
		said += "; arguments patched"
		r.Args, _ = json.Marshal(patched(decode(r.Args), decode(step.Patch)))
	}
	if step.Queue != "" && step.Queue != r.Queue {
		said += "; moved from queue " + r.Queue + " to " + step.Queue
		r.Queue = step.Queue
	}
	m.startGeneration(r, i)
	m.redriven[of] = &redriven{r.Generation, ""}
	i.Reason = said
	m.tell(r, "redrive", i)
	m.replaced(r, was, false)
	return nil
}

// decode parses JSON and keeps numbers as they are written.
func decode(text []byte) (value any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return err
	}
	return value
}

// patched applies a JSON merge patch: null removes a member, objects are merged, anything else replaces.
func patched(value, patch any) any {
	changes, merges := patch.(map[string]any)
	if !merges {
		return patch
	}
	result := map[string]any{}
	if members, is := value.(map[string]any); is {
		result = maps.Clone(members)
	}
	for name, change := range changes {
		if change == nil {
			delete(result, name)
		} else {
			result[name] = patched(result[name], change)
		}
	}
	return result
}

// withoutExtraReasons removes from a store's events what is not guaranteed: a store may say more than the model.
func withoutExtraReasons(got, want []store.Event) []store.Event {
	got = slices.Clone(got)
	for i := range min(len(got), len(want)) {
		if reflect.DeepEqual(decode(got[i].Was), decode(want[i].Was)) { // the laws of edits compare them exactly
			got[i].Was = want[i].Was
		}
		if part, is := strings.CutPrefix(want[i].Reason, loose); is && strings.Contains(got[i].Reason, part) {
			got[i].Reason = want[i].Reason
		}
	}
	return got
}

// countRedriven counts the outcomes of the jobs that a redrive took.
func (m *model) countRedriven(redrive holdfast.ID) (t store.RedriveCounts) {
	counts := map[string]int{}
	for of, row := range m.redriven {
		if of.redrive != redrive {
			continue
		}
		if r := m.jobs[of.job]; row.outcome == "" && r.place == finished && r.Generation >= row.generation {
			row.outcome = string(r.state)
		}
		counts[row.outcome]++
		t.Taken++
	}
	t.InFlight, t.Complete, t.Failed = counts[""], counts["complete"], counts["failed"]
	t.Cancelled, t.Discarded = counts["cancelled"], counts["discarded"]
	return t
}

type deadline struct {
	at  time.Time
	job holdfast.ID
}

// missedDeadlines returns the queued jobs whose next attempt should have started by now.
func (m *model) missedDeadlines() (missed []holdfast.ID) {
	for d, token := range m.deadlines {
		if d.at.After(m.now) {
			continue
		}
		delete(m.deadlines, d)
		if r := m.jobs[d.job]; (r.place == ready || r.place == later) && r.Token == token {
			m.tell(r, "deadline missed", store.Intervention{Actor: "holdfast", Reason: "its next attempt did not start by " + d.at.UTC().Format(time.RFC3339)})
			missed = append(missed, r.ID)
		}
	}
	return missed
}

// An errorGroup is an error group with every failure that was counted in it.
type errorGroup struct {
	store.ErrorGroup
	seen []failureSeen
}

type failureSeen struct {
	at                               time.Time
	kind, queue, dependency, version string
}

// countFailure counts a failed attempt in its error group.
func (m *model) countFailure(r *record, s store.Settlement, to holdfast.State) {
	f := s.Failure
	counts := s.Charge == store.ChargeFailure || s.Charge == store.ChargeCrash || to != holdfast.Queued
	if f == nil || f.Fingerprint == "" || !counts {
		return
	}
	g := m.errors[f.Fingerprint]
	if g == nil {
		g = &errorGroup{ErrorGroup: store.ErrorGroup{
			Fingerprint: f.Fingerprint, Code: f.Code, Category: f.Category, Message: f.Message, Detail: f.Detail, FirstSeen: m.now, Status: store.StatusOpen,
		}}
		m.errors[f.Fingerprint] = g
	}
	g.Failures++
	g.LastSeen = m.now
	g.seen = append(g.seen, failureSeen{m.now, r.Kind, r.Queue, f.Dependency, s.Version})
	switch {
	case g.Status == store.StatusResolved && (g.ResolvedIn == "" || g.ResolvedIn == s.Version):
		g.Status = store.StatusRegressed
		reason := "it failed again after it was resolved"
		if g.ResolvedIn != "" {
			reason += " in version " + g.ResolvedIn
		}
		m.addStory("error/"+g.Fingerprint, "regressed", "holdfast", reason)
	case g.Status == store.StatusIgnored && (!g.Until.IsZero() && !g.Until.After(m.now) || g.UntilCount > 0 && g.Failures >= g.UntilCount):
		g.Status = store.StatusOpen
		reason := fmt.Sprintf("it was ignored until it had %d failures", g.UntilCount)
		if !g.Until.IsZero() && !g.Until.After(m.now) {
			reason = "it was ignored until " + g.Until.UTC().Format(time.RFC3339)
		}
		m.addStory("error/"+g.Fingerprint, "open again", "holdfast", reason)
	}
}

// trendOf is the minute and the queue in which an attempt is counted.
type trendOf struct {
	step  time.Time
	queue string
}

// countTrend counts the result of an attempt, unless it was released.
func (m *model) countTrend(s store.Settlement, to holdfast.State) {
	if to == holdfast.Queued && s.Charge == store.ChargeRelease || to == holdfast.Failed && s.Failure.Benign {
		return
	}
	at := trendOf{m.now.Truncate(time.Minute), s.Queue}
	t := m.trends[at]
	if t == nil {
		t = &store.Trend{Step: at.step, Queue: at.queue}
		m.trends[at] = t
	}
	switch to {
	case holdfast.Complete:
		t.Complete++
	case holdfast.Failed:
		t.Failed++
	case holdfast.Cancelled:
		t.Cancelled++
	default:
		t.Retried++
	}
}

func (m *model) triage(t store.Triage) error {
	if err := t.Check(); err != nil {
		return err
	}
	g := m.errors[t.Fingerprint]
	if g == nil {
		return refuse(holdfast.ErrNotFound, holdfast.ID{}, textNoErrorGroup, t.Fingerprint)
	}
	if t.Status == "" {
		m.addStory("error/"+t.Fingerprint, "note", t.Actor, t.Reason)
		return nil
	}
	g.Status, g.Until, g.UntilCount, g.ResolvedIn = t.Status, time.Time{}, 0, t.Version
	if t.For > 0 {
		g.Until = m.now.Add(t.For)
	}
	if t.Count > 0 {
		g.UntilCount = g.Failures + t.Count
	}
	m.addStory("error/"+t.Fingerprint, string(t.Status), t.Actor, t.Reason)
	return nil
}
