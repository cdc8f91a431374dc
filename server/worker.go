package server

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

// An engine that works through a server stores, with a worker's key, the state of its breakers, budgets, schedules, redrives and duties. This file checks
// what such a change may contain. It cannot change what people have decided: the key is the actor of every event, holds of operators cannot be placed or
// lifted, and a record that contains a person's request must keep it.
//
// The rules compare with the record as the store has it. A concurrent change between that read and the write is safe: the store refuses a record whose
// version is not the one that the caller read, and a caller that read an older version than the rule saw is refused in the same way.

// A recordRule decides whether a worker may replace a stored record by another. A stored record of version 0 does not exist yet.
type recordRule func(stored, wanted store.Record) error

// workerNamespaces are the namespaces that a worker may read. Those with a rule it may also write.
var workerNamespaces = map[string]recordRule{
	"breaker":             breakerRule,
	"budget":              anyRule,
	"enqueue":             anyRule,
	"artifact":            anyRule,
	duty.NamespaceReport:  anyRule,
	catalog.Namespace:     anyRule,
	namespaceRedrive:      redriveRule,
	schedule.Namespace:    scheduleRule,
	duty.NamespaceControl: dutyRule,
	namespaceRetention:    warningRule,
	"policy":              nil,
	"share":               shareRule,
}

const namespaceRetention = "retention"

// unboundNamespaces are the namespaces about jobs of every queue. A bound key may neither read nor write them; engines with unbound keys do.
var unboundNamespaces = []string{namespaceRedrive, schedule.Namespace, "artifact"}

// adminNamespaces are the namespaces that only admins may read.
var adminNamespaces = []string{apikey.Namespace, subscription.Namespace}

// mayReadNamespace refuses a namespace that the caller may not read. some is false if the namespace is always empty for the caller.
func (c Caller) mayReadNamespace(namespace string) (some bool, err error) {
	if _, ok := workerNamespaces[namespace]; !c.isWorker() {
		if c.Scope != apikey.Admin && slices.ContainsFunc(adminNamespaces, func(one string) bool { return strings.EqualFold(one, namespace) }) {
			return false, forbidden("the records of namespace " + namespace + " need a key of scope admin")
		}
		return true, nil
	} else if !ok {
		return false, forbidden("the records of namespace " + namespace + " are not kept by engines: a worker's key cannot read them; use a key of scope admin")
	}
	return !c.bound() || !slices.Contains(unboundNamespaces, namespace), nil
}

// mayKeep refuses a change that an engine does not make, and sets the caller's key as the actor of the rest.
func (s *Server) mayKeep(ctx context.Context, c Caller, change *store.Change) error {
	if c.Key == "" {
		return nil
	}
	for i := range change.Events {
		e := &change.Events[i]
		e.Actor, e.Request = c.engineActor(e.Actor), c.Request
	}
	for i := range change.Place {
		change.Place[i].Actor = c.holdActor(change.Place[i])
	}
	if !c.isWorker() {
		return nil
	}
	switch {
	case len(change.Deliver) > 0:
		return forbidden("a worker's key cannot create deliveries: a notifier that works through a server needs a key of scope admin")
	case len(change.Listen) > 0:
		return forbidden("a worker's key cannot change which events are written to the feed: use a key of scope admin")
	}
	for i := range change.Events {
		if err := c.mayTell(&change.Events[i]); err != nil {
			return err
		}
	}
	breakers, err := s.mayKeepRecords(ctx, c, change.Records)
	if err != nil {
		return err
	}
	if err := s.mayHold(ctx, c, change, breakers); err != nil {
		return err
	}
	for i := range change.Artifacts {
		if err := s.mayTouch(ctx, c, change.Artifacts[i].Job, 0); err != nil {
			return err
		}
	}
	return c.mayEnqueue(change.Enqueue)
}

// engineActor is the actor of what a remote engine does itself: a fixed name with the name of its key. No other caller can have it.
func (c Caller) engineActor(given string) string {
	if c.isWorker() {
		return breaker.System + " (key " + c.Name + ")"
	}
	return c.actor(given)
}

// holdActor is the actor of a hold that a remote engine places. Limits and time windows follow the applied policy, and engines recognise them by that name.
func (c Caller) holdActor(h store.Hold) string {
	if h.Source == store.SourceLimit || h.Source == store.SourceWindow {
		return policyActor
	}
	return c.engineActor(h.Actor)
}

const policyActor = "policy"

// mayTell refuses events that engines do not write.
func (c Caller) mayTell(e *store.Event) error {
	namespace, _, _ := strings.Cut(e.Subject, "/")
	switch {
	case !e.Job.IsZero() && e.Name == store.EventExpired && !c.bound():
		return nil
	case !e.Job.IsZero():
		return forbidden("a worker's key cannot write events of a job: they are written when the job is settled")
	case e.Subject == namespaceRetention && e.Name == "warning":
		return nil
	case slices.Contains([]string{"breaker", "budget", namespaceRedrive, schedule.Namespace, duty.NamespaceControl}, namespace) && namespace != e.Subject && !(c.bound() && slices.Contains(unboundNamespaces, namespace)):
		return nil
	}
	return forbidden("a worker's key cannot write events about " + e.Subject + ": engines write events of breakers, budgets, redrives, schedules and duties")
}

// mayKeepRecords refuses records that a worker may not write. It returns the breakers as the change makes them, by dependency.
func (s *Server) mayKeepRecords(ctx context.Context, c Caller, records []store.Record) (breakers map[string]breaker.Snapshot, err error) {
	namespaces := map[string][]store.Record{}
	breakers = map[string]breaker.Snapshot{}
	for _, r := range records {
		may := workerNamespaces[r.Namespace]
		if may == nil {
			return nil, forbidden("the records of namespace " + r.Namespace + " cannot be written with a worker's key: use a key of scope admin")
		}
		if c.bound() && slices.Contains(unboundNamespaces, r.Namespace) {
			return nil, c.outsideBinding("it can only write the records of breakers, budgets and duties")
		}
		if _, read := namespaces[r.Namespace]; !read {
			if namespaces[r.Namespace], err = s.cfg.Store.Records(ctx, r.Namespace); err != nil {
				return nil, err
			}
		}
		stored := recordIn(namespaces[r.Namespace], r.Name)
		if stored.Version > r.Version {
			continue // the store answers that the version is out of date
		}
		if err := may(stored, r); err != nil {
			return nil, err
		}
		if r.Namespace == "breaker" {
			var after breaker.Snapshot
			_ = json.Unmarshal(r.Body, &after) // the rule has already read it
			breakers[r.Name] = after
		}
	}
	return breakers, nil
}

func recordIn(records []store.Record, name string) store.Record {
	if i := slices.IndexFunc(records, func(r store.Record) bool { return r.Name == name }); i >= 0 {
		return records[i]
	}
	if len(records) > 0 {
		return store.Record{AsOf: records[0].AsOf}
	}
	return store.Record{}
}

// mayHold refuses holds that only operators may place or lift.
func (s *Server) mayHold(ctx context.Context, c Caller, change *store.Change, breakers map[string]breaker.Snapshot) error {
	moved := slices.Concat(change.Place, change.Lift)
	for _, d := range change.Deposits {
		moved = append(moved, d.Hold)
	}
	if len(moved) == 0 {
		return nil
	}
	present, err := s.cfg.Store.Holds(ctx)
	if err != nil {
		return err
	}
	for i, h := range moved {
		if !slices.Contains([]string{store.SourceBreaker, store.SourceBudget, store.SourceLimit, store.SourceWindow, store.SourceHandler}, h.Source) {
			return forbidden("a worker's key cannot place or lift holds of operators: use a key of scope operator")
		}
		if err := c.mayWorkOn(named(h.Queue), named(h.Kind)); err != nil {
			return err
		}
		if h.Source == store.SourceBreaker {
			if err := followsBreaker(h, breakers, i < len(change.Place)); err != nil {
				return err
			}
		} else if by := placedBy(present, h); by != "" && h.Source != store.SourceHandler && by != policyActor && !breaker.IsSystem(by) {
			return forbidden("an operator has placed this hold: use a key of scope operator to change it")
		}
	}
	return nil
}

func named(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// placedBy is the actor of the present hold with the same source and target.
func placedBy(present []store.Hold, h store.Hold) string {
	scope, name := h.Scope()
	for i := range present {
		if at, on := present[i].Scope(); at == scope && on == name && present[i].Source == h.Source {
			return present[i].Actor
		}
	}
	return ""
}

// followsBreaker refuses a breaker's hold that does not match the breaker in the same change. The rule for the breaker's record keeps what a person has forced.
func followsBreaker(h store.Hold, breakers map[string]breaker.Snapshot, place bool) error {
	b, kept := breakers[h.Dependency]
	switch closed := h.Closed(); {
	case h.Dependency == "" || !kept:
		return forbidden("a breaker's hold changes together with the breaker: write the record of the breaker in the same change")
	case b.State.Refuses() && !(place && closed), b.State == breaker.ForcedClosed && place:
		return forbidden("the breaker of " + h.Dependency + " is " + string(b.State) + ": this hold contradicts it")
	}
	return nil
}

func anyRule(_, _ store.Record) error { return nil }

// breakerRule: a breaker changes state by the results of calls. What a person has forced stays until it is over, and past transitions are not changed.
func breakerRule(stored, wanted store.Record) error {
	var before, after breaker.Snapshot
	if json.Unmarshal(wanted.Body, &after) != nil || stored.Version > 0 && json.Unmarshal(stored.Body, &before) != nil {
		return forbidden("the record of breaker " + wanted.Name + " cannot be read: a worker's key can write breakers, but not delete them")
	}
	ordered := before.State.Forced() || before.Actor != "" && before.State == breaker.Open && stored.AsOf.Before(before.Until)
	same := after.State == before.State && after.Until.Equal(before.Until) && after.Actor == before.Actor && after.Reason == before.Reason
	forged := func(t breaker.Transition) bool {
		return t.Actor != "" && t.Actor != breaker.System && !slices.ContainsFunc(before.History, func(b breaker.Transition) bool {
			return b.Actor == t.Actor && b.To == t.To && b.From == t.From && b.Why == t.Why && b.At.Equal(t.At)
		})
	}
	switch {
	case ordered && !same:
		return forbidden("an operator has set the breaker of " + wanted.Name + " to " + string(before.State) + ": use a key of scope operator to change it")
	case after.State.Forced() && !before.State.Forced(), after.Actor != "" && after.Actor != before.Actor, slices.ContainsFunc(after.History, forged):
		return forbidden("a worker's key cannot force a breaker or act in the name of an operator")
	}
	return nil
}

// shareRule: an engine sets the weights that a policy names. Weights that an operator has set stay.
func shareRule(stored, wanted store.Record) error {
	var before, after struct {
		Actor string `json:"actor"`
	}
	if stored.Version > 0 && (json.Unmarshal(stored.Body, &before) != nil || before.Actor != policyActor) || wanted.Body != nil && (json.Unmarshal(wanted.Body, &after) != nil || after.Actor != policyActor) {
		return forbidden("the weight of owner " + wanted.Name + " is set by operators: use a key of scope operator")
	}
	return nil
}

// redriveRule: an engine advances a redrive that an operator started and that is running. It cannot start, change or resume one.
func redriveRule(stored, wanted store.Record) error {
	var before, after redrive.Progress
	if stored.Version == 0 || json.Unmarshal(stored.Body, &before) != nil || json.Unmarshal(wanted.Body, &after) != nil ||
		before.State != redrive.Running || before.ID != after.ID || before.Actor != after.Actor || !sameJSON(before.Spec, after.Spec) {
		return errNoOrder
	}
	if after.State == redrive.Paused || after.State == redrive.Cancelled {
		return forbidden("a worker's key cannot pause or cancel a redrive: use a key of scope operator")
	}
	return nil
}

// scheduleRule: an engine records the slots for which it has made jobs, and that a pause is over. The rest of a schedule is changed by operators.
func scheduleRule(stored, wanted store.Record) error {
	var before, after schedule.Schedule
	if stored.Version == 0 || json.Unmarshal(stored.Body, &before) != nil || json.Unmarshal(wanted.Body, &after) != nil {
		return errNoSchedule
	}
	if before.Paused && !after.Paused && !before.PausedUntil.IsZero() && !stored.AsOf.Before(before.PausedUntil) {
		before.Paused, before.PausedUntil, before.Actor, before.Reason = after.Paused, after.PausedUntil, after.Actor, after.Reason
	}
	before.Last, before.Ran, before.Runs, before.Skipped = after.Last, after.Ran, after.Runs, after.Skipped
	if !sameJSON(before, after) {
		return errNoSchedule
	}
	return nil
}

var errNoSchedule = forbidden("a worker's key cannot create, change or delete schedules: it can only record slots; use a key of scope operator")

// dutyRule: an engine records that a pause has ended by itself. Other requests about duties are made by operators.
func dutyRule(stored, wanted store.Record) error {
	var before, after duty.Control
	if stored.Version == 0 || json.Unmarshal(stored.Body, &before) != nil || json.Unmarshal(wanted.Body, &after) != nil || !before.Over(stored.AsOf) || !sameJSON(before.Resumed(), after) {
		return forbidden("a worker's key cannot pause or run duties: it can only record that a pause is over; use a key of scope operator")
	}
	return nil
}

// warningRule: an engine records that a rule will delete dead letters. The rule deletes them a set time after the record was written, by the store's clock.
func warningRule(_, wanted store.Record) error {
	if !strings.HasPrefix(wanted.Name, "warned/") || wanted.Body == nil {
		return forbidden("a worker's key cannot change retention rules: it can only record warnings; use a key of scope admin")
	}
	return nil
}

// runningOrder returns the request of a redrive that an operator has started and that is running.
func (s *Server) runningOrder(ctx context.Context, id holdfast.ID) (redrive.Spec, error) {
	records, err := s.cfg.Store.Records(ctx, namespaceRedrive)
	if err != nil {
		return redrive.Spec{}, err
	}
	var p redrive.Progress
	if json.Unmarshal(recordIn(records, id.String()).Body, &p) != nil || p.ID != id || p.State != redrive.Running {
		return redrive.Spec{}, errNoOrder
	}
	return p.Spec, nil
}

var errNoOrder = forbidden("this is not a running redrive as an operator started it: a worker's key can only advance running redrives; use a key of scope operator")

func sameJSON(a, b any) bool {
	one, err := json.Marshal(a)
	other, lost := json.Marshal(b)
	return err == nil && lost == nil && bytes.Equal(one, other)
}

// redriveStep is the step of a redrive as the caller may take it. A worker's step must match the operator's request, and the operator is its actor.
func (s *Server) redriveStep(ctx context.Context, c Caller, step store.Redrive) (store.Redrive, error) {
	switch {
	case c.Key == "":
		return step, nil
	case !c.isWorker():
		step.Actor = c.actor(step.Actor)
		return step, nil
	case c.bound():
		return step, c.outsideBinding("it cannot redrive jobs")
	}
	o, err := s.runningOrder(ctx, step.ID)
	if err == nil && (o.Discard != step.Discard || o.Queue != step.Queue || !sameJSON(o.Patch, step.Patch)) {
		err = errNoOrder
	}
	step.Actor, step.Reason = o.Actor, o.Reason
	return step, err
}

// purge takes one step of retention. A worker does not choose the rules: they are those that an admin has applied to the store, or else the server's.
func (s *Server) purge(ctx context.Context, c Caller, p store.Purge) (store.PurgeResult, error) {
	if c.isWorker() {
		records, err := s.cfg.Store.Records(ctx, namespaceRetention)
		if err == nil {
			p, err = s.cfg.Engine.Purge(p, records)
		}
		if err != nil {
			return store.PurgeResult{}, err
		}
	}
	return s.cfg.Store.Purge(ctx, p)
}

// deleteHistory deletes old history. A worker does not choose the age: nothing is deleted sooner than the server's configuration says.
func (s *Server) deleteHistory(ctx context.Context, c Caller, history string, older time.Duration, limit int) (int, error) {
	if c.isWorker() {
		keep := s.cfg.Engine.HistoryAge(history)
		if keep == store.Forever {
			return 0, nil
		}
		older = max(older, keep)
	}
	n, err := s.cfg.Store.DeleteHistory(ctx, history, older, limit)
	if err == nil && n > 0 && history == store.HistoryStories && c.Key != "" && !c.isWorker() { // done by a person: the audit log records it
		line := store.Event{Subject: "audit", Name: "forget", Actor: c.actor(""), Request: c.Request, Reason: "entries older than " + older.String()}
		err = s.cfg.Store.Apply(ctx, store.Change{Events: []store.Event{line}})
	}
	return n, err
}
