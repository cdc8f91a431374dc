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
)

// An engine far from its store keeps, with a worker's key, what its breakers, budgets, schedules, redrives and duties remember. This file says what such
// a change may contain. Decisions of people stay as they are: the actor of every line is the key, holds of operators are out of reach, and a record that
// carries a person's order keeps that order.

// A keeping decides whether a worker may replace a record, as the store holds it now, by another. A stored record of version 0 is not there yet.
type keeping func(stored, wanted holdfast.Record) error

// workerRooms are the rooms that a worker reads; those with a rule it also keeps.
var workerRooms = map[string]keeping{
	"breaker":       keepsBreaker,
	"budget":        keepsAny,
	"enqueue":       keepsAny,
	"artifact":      keepsAny,
	duty.RoomReport: keepsAny,
	catalog.Room:    keepsAny,
	redriveRoom:     keepsRedrive,
	schedule.Room:   keepsSchedule,
	duty.RoomOrder:  keepsDuty,
	retentionRoom:   keepsWarning,
	"policy":        nil,
	"share":         keepsShare,
}

const retentionRoom = "retention"

// elsewhere are the rooms about work of every queue: a key that is bound neither reads nor keeps them. Engines whose keys are not bound do.
var elsewhere = []string{redriveRoom, schedule.Room, "artifact"}

// secretRooms are read by admins alone.
var secretRooms = []string{apikey.Room, subscription.Room}

// roomToRead refuses a room that the caller may not read, and reports whether there is anything in it for the caller.
func (c Caller) roomToRead(room string) (some bool, err error) {
	if _, ok := workerRooms[room]; !c.confined() {
		if c.Scope != apikey.Admin && slices.ContainsFunc(secretRooms, func(one string) bool { return strings.EqualFold(one, room) }) {
			return false, forbidden("the room " + room + " is for admins: use a key of that scope")
		}
		return true, nil
	} else if !ok {
		return false, forbidden("the room " + room + " is no engine's, and a worker reads only what engines keep: use a key of scope admin")
	}
	return !c.narrow() || !slices.Contains(elsewhere, room), nil
}

// mayKeep refuses a change that is not an engine's to make, and names the caller's key in what is left.
func (s *Server) mayKeep(ctx context.Context, c Caller, change *holdfast.Change) error {
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
	if !c.confined() {
		return nil
	}
	switch {
	case len(change.Deliver) > 0:
		return forbidden("deliveries of subscriptions are made by the notifier: one that works over HTTP needs a key of scope admin")
	case len(change.Listen) > 0:
		return forbidden("what subscriptions listen for is not a worker's to change: use a key of scope admin")
	}
	for i := range change.Events {
		if err := c.mayTell(&change.Events[i]); err != nil {
			return err
		}
	}
	circuits, err := s.mayKeepRecords(ctx, c, change.Records)
	if err != nil {
		return err
	}
	if err := s.mayHold(ctx, c, change, circuits); err != nil {
		return err
	}
	for i := range change.Artifacts {
		if err := s.mayTouch(ctx, c, change.Artifacts[i].Job, 0); err != nil {
			return err
		}
	}
	return c.mayEnqueue(change.Enqueue)
}

// engineActor is the actor of what an engine far away does by itself: fixed, with the name of its key. Nothing that another caller says reads like it.
func (c Caller) engineActor(said string) string {
	if c.confined() {
		return breaker.System + " (key " + c.Name + ")"
	}
	return c.actor(said)
}

// holdActor is the actor of a hold that an engine far away places. Limits and windows follow the applied policy, and engines know them by that name.
func (c Caller) holdActor(h holdfast.Hold) string {
	if h.Source == holdfast.SourceLimit || h.Source == holdfast.SourceWindow {
		return policyActor
	}
	return c.engineActor(h.Actor)
}

const policyActor = "policy"

// mayTell refuses lines of stories that no engine writes.
func (c Caller) mayTell(e *holdfast.Event) error {
	room, _, _ := strings.Cut(e.Subject, "/")
	switch {
	case !e.Job.IsZero() && e.Name == holdfast.EventExpired && !c.narrow():
		return nil
	case !e.Job.IsZero():
		return forbidden("a worker writes no line into the story of a job but by settling it")
	case e.Subject == retentionRoom && e.Name == "warning":
		return nil
	case slices.Contains([]string{"breaker", "budget", redriveRoom, schedule.Room, duty.RoomOrder}, room) && room != e.Subject && !(c.narrow() && slices.Contains(elsewhere, room)):
		return nil
	}
	return forbidden("a line about " + e.Subject + " is not a worker's to write: engines tell of breakers, budgets, redrives, schedules and duties")
}

// mayKeepRecords refuses records that are not a worker's to keep. It answers with the circuits as they will be, by dependency.
func (s *Server) mayKeepRecords(ctx context.Context, c Caller, records []holdfast.Record) (circuits map[string]breaker.Circuit, err error) {
	rooms := map[string][]holdfast.Record{}
	circuits = map[string]breaker.Circuit{}
	for _, r := range records {
		may := workerRooms[r.Room]
		if may == nil {
			return nil, forbidden("the room " + r.Room + " is for admins: a worker keeps what engines remember, and nothing that people decide")
		}
		if c.narrow() && slices.Contains(elsewhere, r.Room) {
			return nil, c.beyond("keeps only what breakers, budgets and duties remember")
		}
		if _, read := rooms[r.Room]; !read {
			if rooms[r.Room], err = s.cfg.Store.Records(ctx, r.Room); err != nil {
				return nil, err
			}
		}
		stored := recordIn(rooms[r.Room], r.Name)
		if stored.Version > r.Version {
			continue // the store answers that the caller was too late
		}
		if err := may(stored, r); err != nil {
			return nil, err
		}
		if r.Room == "breaker" {
			var after breaker.Circuit
			_ = json.Unmarshal(r.Body, &after) // its rule has read it
			circuits[r.Name] = after
		}
	}
	return circuits, nil
}

func recordIn(records []holdfast.Record, name string) holdfast.Record {
	if i := slices.IndexFunc(records, func(r holdfast.Record) bool { return r.Name == name }); i >= 0 {
		return records[i]
	}
	if len(records) > 0 {
		return holdfast.Record{AsOf: records[0].AsOf}
	}
	return holdfast.Record{}
}

// mayHold refuses holds that are an operator's to place or to lift.
func (s *Server) mayHold(ctx context.Context, c Caller, change *holdfast.Change, circuits map[string]breaker.Circuit) error {
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
		if !slices.Contains([]string{holdfast.SourceBreaker, holdfast.SourceBudget, holdfast.SourceLimit, holdfast.SourceWindow, holdfast.SourceHandler}, h.Source) {
			return forbidden("holds of operators are placed and lifted by operators: use a key of that scope")
		}
		if err := c.mayWorkOn(named(h.Queue), named(h.Kind)); err != nil {
			return err
		}
		if h.Source == holdfast.SourceBreaker {
			if err := followsCircuit(h, circuits, i < len(change.Place)); err != nil {
				return err
			}
		} else if by := placedBy(present, h); by != "" && h.Source != holdfast.SourceHandler && by != policyActor && !breaker.IsSystem(by) {
			return forbidden("an operator has placed this hold, and it is the operator's to change: use a key of scope operator")
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

// placedBy is the actor of the hold that a hold of the same source on the same thing replaces.
func placedBy(present []holdfast.Hold, h holdfast.Hold) string {
	scope, name := h.On()
	for i := range present {
		if at, on := present[i].On(); at == scope && on == name && present[i].Source == h.Source {
			return present[i].Actor
		}
	}
	return ""
}

// followsCircuit refuses a breaker's hold that does not follow from the circuit in the same change, which keeps what a person has ordered.
func followsCircuit(h holdfast.Hold, circuits map[string]breaker.Circuit, place bool) error {
	circuit, kept := circuits[h.Dependency]
	switch closed := h.Closed(); {
	case h.Dependency == "" || !kept:
		return forbidden("a breaker's hold changes together with the breaker: keep the record of its circuit in the same change")
	case circuit.State.Refuses() && !(place && closed), circuit.State == breaker.ForcedClosed && place:
		return forbidden("the breaker of " + h.Dependency + " is " + string(circuit.State) + ", and this hold says otherwise")
	}
	return nil
}

func keepsAny(_, _ holdfast.Record) error { return nil }

// keepsBreaker: a circuit moves by what calls say. What a person ordered of it stays until it is over, and its history is not rewritten.
func keepsBreaker(stored, wanted holdfast.Record) error {
	var before, after breaker.Circuit
	if json.Unmarshal(wanted.Body, &after) != nil || stored.Version > 0 && json.Unmarshal(stored.Body, &before) != nil {
		return forbidden("the record of breaker " + wanted.Name + " cannot be read: a worker keeps circuits, and removes none")
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
		return forbidden("an operator holds the breaker of " + wanted.Name + " " + string(before.State) + ": only an operator changes that")
	case after.State.Forced() && !before.State.Forced(), after.Actor != "" && after.Actor != before.Actor, slices.ContainsFunc(after.History, forged):
		return forbidden("a worker forces no breaker, and speaks for no operator")
	}
	return nil
}

// keepsShare: an engine gives owners the shares that a policy names. Those that an operator has set stay.
func keepsShare(stored, wanted holdfast.Record) error {
	var before, after struct {
		Actor string `json:"actor"`
	}
	if stored.Version > 0 && (json.Unmarshal(stored.Body, &before) != nil || before.Actor != policyActor) || wanted.Body != nil && (json.Unmarshal(wanted.Body, &after) != nil || after.Actor != policyActor) {
		return forbidden("the share of " + wanted.Name + " is an operator's to set: use a key of that scope")
	}
	return nil
}

// keepsRedrive: an engine takes the steps of a redrive that was ordered and is running. It starts none, changes no order and resumes none.
func keepsRedrive(stored, wanted holdfast.Record) error {
	var before, after redrive.Progress
	if stored.Version == 0 || json.Unmarshal(stored.Body, &before) != nil || json.Unmarshal(wanted.Body, &after) != nil ||
		before.State != redrive.Running || before.ID != after.ID || before.Actor != after.Actor || !sameJSON(before.Order, after.Order) {
		return errNoOrder
	}
	if after.State == redrive.Paused || after.State == redrive.Cancelled {
		return forbidden("a redrive is paused and cancelled by operators: use a key of that scope")
	}
	return nil
}

// keepsSchedule: an engine notes which slots it has made jobs of, and that a pause is over. What the schedule says is an operator's.
func keepsSchedule(stored, wanted holdfast.Record) error {
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

var errNoSchedule = forbidden("schedules are set, changed and removed by operators: a worker only notes which slots it has made jobs of")

// keepsDuty: an engine notes that a pause has ended by itself. Other orders are an operator's.
func keepsDuty(stored, wanted holdfast.Record) error {
	var before, after duty.Order
	if stored.Version == 0 || json.Unmarshal(stored.Body, &before) != nil || json.Unmarshal(wanted.Body, &after) != nil || !before.Over(stored.AsOf) || !sameJSON(before.Resumed(), after) {
		return forbidden("duties are ordered by operators: a worker only notes that a pause has ended by itself")
	}
	return nil
}

// keepsWarning: an engine notes that a rule will delete dead letters. From when on it does is counted from when the note was kept, by the store's clock.
func keepsWarning(_, wanted holdfast.Record) error {
	if !strings.HasPrefix(wanted.Name, "warned/") || wanted.Body == nil {
		return forbidden("the rules of retention are for admins: a worker only notes that one of them has warned")
	}
	return nil
}

// ordered finds the order of a redrive that an operator has started and that runs.
func (s *Server) ordered(ctx context.Context, id holdfast.ID) (redrive.Order, error) {
	records, err := s.cfg.Store.Records(ctx, redriveRoom)
	if err != nil {
		return redrive.Order{}, err
	}
	var p redrive.Progress
	if json.Unmarshal(recordIn(records, id.String()).Body, &p) != nil || p.ID != id || p.State != redrive.Running {
		return redrive.Order{}, errNoOrder
	}
	return p.Order, nil
}

var errNoOrder = forbidden("no operator has ordered this redrive so, or it does not run: a worker takes the steps of redrives that were ordered, and starts none")

func sameJSON(a, b any) bool {
	one, err := json.Marshal(a)
	other, lost := json.Marshal(b)
	return err == nil && lost == nil && bytes.Equal(one, other)
}

// redriveStep is the step of a redrive as the caller may take it: a worker takes it as it was ordered, on behalf of the operator who ordered it.
func (s *Server) redriveStep(ctx context.Context, c Caller, step holdfast.Redrive) (holdfast.Redrive, error) {
	switch {
	case c.Key == "":
		return step, nil
	case !c.confined():
		step.Actor = c.actor(step.Actor)
		return step, nil
	case c.narrow():
		return step, c.beyond("redrives nothing")
	}
	o, err := s.ordered(ctx, step.ID)
	if err == nil && (o.Discard != step.Discard || o.Queue != step.Queue || !sameJSON(o.Patch, step.Patch)) {
		err = errNoOrder
	}
	step.Actor, step.Reason = o.Actor, o.Reason
	return step, err
}

// purge takes a step of retention. A worker does not choose the rules: they are those that an admin has applied to the store, or else the server's own.
func (s *Server) purge(ctx context.Context, c Caller, p holdfast.Purge) (holdfast.Purged, error) {
	if c.confined() {
		records, err := s.cfg.Store.Records(ctx, retentionRoom)
		if err == nil {
			p, err = s.cfg.Engine.Purge(p, records)
		}
		if err != nil {
			return holdfast.Purged{}, err
		}
	}
	return s.cfg.Store.Purge(ctx, p)
}

// forget deletes what is old from a shelf. A worker does not choose the age: nothing goes sooner than the server's own configuration says.
func (s *Server) forget(ctx context.Context, c Caller, shelf string, older time.Duration, limit int) (int, error) {
	if c.confined() {
		keep := s.cfg.Engine.Keep(shelf)
		if keep == holdfast.Forever {
			return 0, nil
		}
		older = max(older, keep)
	}
	n, err := s.cfg.Store.Forget(ctx, shelf, older, limit)
	if err == nil && n > 0 && shelf == holdfast.ShelfStory && c.Key != "" && !c.confined() { // a person did: the audit log says who
		line := holdfast.Event{Subject: "audit", Name: "forget", Actor: c.actor(""), Request: c.Request, Reason: "lines older than " + older.String()}
		err = s.cfg.Store.Keep(ctx, holdfast.Change{Events: []holdfast.Event{line}})
	}
	return n, err
}
