package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

const namespaceBreaker = "breaker"

// A Breaker is the state of one dependency's breaker, and what it lets through.
type Breaker struct {
	Dependency string        `json:"dependency"`
	State      breaker.State `json:"state"`
	Since      time.Time     `json:"since,omitzero"`
	Why        string        `json:"why,omitempty"`       // reason of the last transition
	NextProbe  time.Time     `json:"next_probe,omitzero"` // while open
	Until      time.Time     `json:"until,omitzero"`      // while recovering: when it closes
	Opens      int           `json:"opens,omitempty"`     // times it opened since it was last closed

	Calls    int `json:"calls"`    // in its window
	Failures int `json:"failures"` // failed calls in its window
	Slow     int `json:"slow"`     // slow calls in its window

	Code    string `json:"code,omitempty"`    // of the last failure
	Message string `json:"message,omitempty"` // of the last failure
	Actor   string `json:"actor,omitempty"`   // the person whose command set the state, if one did
	Reason  string `json:"reason,omitempty"`
	Prober  string `json:"prober,omitempty"` // the worker that runs health probes

	Lets    *store.Hold          `json:"lets,omitempty"`    // the hold that the breaker has placed, if it has
	Behind  int                  `json:"behind"`            // due jobs that wait for it, up to 10,000
	Kinds   []string             `json:"kinds,omitempty"`   // that live workers declared to call the dependency
	History []breaker.Transition `json:"history,omitempty"` // the last 50, the newest first
}

// Breakers returns every dependency that workers declared or that has a breaker, by name.
func (s *Service) Breakers(ctx context.Context) ([]Breaker, error) {
	records, err := s.store.Records(ctx, namespaceBreaker)
	if err != nil {
		return nil, err
	}
	kinds, err := s.declared(ctx)
	if err != nil {
		return nil, err
	}
	holds, err := s.store.Holds(ctx)
	if err != nil {
		return nil, err
	}
	var list []Breaker
	for _, r := range records {
		b := describe(r.Name, decode(r))
		b.Kinds = kinds[r.Name]
		delete(kinds, r.Name)
		list = append(list, b)
	}
	for dependency, kinds := range kinds {
		list = append(list, Breaker{Dependency: dependency, State: breaker.Closed, Kinds: kinds})
	}
	for n := range list {
		if err := s.behind(ctx, &list[n], holds); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b Breaker) int { return strings.Compare(a.Dependency, b.Dependency) })
	return list, nil
}

// Breaker returns one breaker. An unknown dependency is ErrNotFound.
func (s *Service) Breaker(ctx context.Context, dependency string) (Breaker, error) {
	list, err := s.Breakers(ctx)
	if err != nil {
		return Breaker{}, err
	}
	for _, b := range list {
		if b.Dependency == dependency {
			return b, nil
		}
	}
	return Breaker{}, unknownDependency(dependency)
}

// behind adds the hold and the number of jobs that wait. A closed breaker holds none, so the store is not asked.
func (s *Service) behind(ctx context.Context, b *Breaker, holds []store.Hold) (err error) {
	for _, h := range holds {
		if h.Source == store.SourceBreaker && h.Dependency == b.Dependency {
			b.Lets = &h
		}
	}
	if b.Lets != nil || b.State.Refuses() {
		b.Behind, err = s.store.CountHeld(ctx, store.Hold{Dependency: b.Dependency, Source: store.SourceBreaker, Actor: breaker.System})
	}
	return err
}

// declared returns for each dependency the kinds that live workers declared to call it.
func (s *Service) declared(ctx context.Context) (map[string][]string, error) {
	workers, err := s.store.Workers(ctx)
	kinds := map[string][]string{}
	for _, worker := range workers {
		for kind, dependency := range worker.Depends {
			if dependency != "" && !slices.Contains(kinds[dependency], kind) {
				kinds[dependency] = append(kinds[dependency], kind)
				slices.Sort(kinds[dependency])
			}
		}
	}
	return kinds, err
}

// circuit reads a dependency's circuit; nil if no call of it has been recorded.
func (s *Service) circuit(ctx context.Context, dependency string) (*breaker.Snapshot, error) {
	r, err := s.readRecord(ctx, namespaceBreaker, dependency)
	if err != nil || r.Version == 0 {
		return nil, err
	}
	c := decode(r)
	return &c, nil
}

// decode reads a circuit. A record that cannot be decoded counts as a new circuit, as it does for workers.
func decode(r store.Record) (c breaker.Snapshot) {
	if r.Version == 0 || json.Unmarshal(r.Body, &c) != nil || c.State == "" {
		return breaker.Snapshot{State: breaker.Closed}
	}
	return c
}

// encode writes a circuit into its record. Other fields that workers keep there stay, except "flow": without it
// workers place the hold again.
func encode(r store.Record, c breaker.Snapshot) (json.RawMessage, error) {
	was, err := fields(decode(r))
	if err != nil {
		return nil, err
	}
	is, err := fields(c)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	_ = json.Unmarshal(r.Body, &all) // a body that cannot be decoded is replaced
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return was[name] != nil || name == "flow" })
	maps.Copy(all, is)
	return json.Marshal(all)
}

// fields returns a circuit's JSON members.
func fields(c breaker.Snapshot) (all map[string]json.RawMessage, err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(body, &all)
	return all, err
}

// describe returns a circuit as a Breaker.
func describe(dependency string, c breaker.Snapshot) Breaker {
	b := Breaker{
		Dependency: dependency, State: c.State, Since: c.Since, Opens: c.Opens,
		Code: c.Code, Message: c.Message, Actor: c.Actor, Reason: c.Reason, Prober: c.Probing, History: slices.Clone(c.History),
	}
	slices.Reverse(b.History)
	if len(b.History) > 0 {
		b.Why = b.History[0].Why
	}
	switch c.State {
	case breaker.Open:
		b.NextProbe = c.Until
	case breaker.Recovering:
		b.Until = c.Until
	}
	slowBad := strings.Count(c.Recent, "X")
	b.Calls, b.Failures, b.Slow = len(c.Recent), strings.Count(c.Recent, "x")+slowBad, strings.Count(c.Recent, "s")+slowBad
	for _, slot := range c.Slots {
		b.Calls, b.Failures, b.Slow = b.Calls+slot.Calls, b.Failures+slot.Failures, b.Slow+slot.Slow
	}
	return b
}

// OpenBreaker opens a breaker as failed calls would: it is probed later and recovers by itself.
func (s *Service) OpenBreaker(ctx context.Context, dependency string, by Actor) error {
	return s.forceBreaker(ctx, dependency, breaker.Open, by)
}

// CloseBreaker closes a breaker: its jobs return over the ramp, and calls are evaluated again.
func (s *Service) CloseBreaker(ctx context.Context, dependency string, by Actor) error {
	return s.forceBreaker(ctx, dependency, breaker.Closed, by)
}

// ForceBreaker keeps a breaker open or closed, whatever the results of calls, until AutoBreaker.
func (s *Service) ForceBreaker(ctx context.Context, dependency string, open bool, by Actor) error {
	if open {
		return s.forceBreaker(ctx, dependency, breaker.ForcedOpen, by)
	}
	return s.forceBreaker(ctx, dependency, breaker.ForcedClosed, by)
}

// AutoBreaker ends a forced state: calls are evaluated again.
func (s *Service) AutoBreaker(ctx context.Context, dependency string, by Actor) error {
	return s.forceBreaker(ctx, dependency, breaker.Auto, by)
}

// forceBreaker saves the circuit, its hold and the events of a person's command in one change.
func (s *Service) forceBreaker(ctx context.Context, dependency string, to breaker.State, by Actor) error {
	hold := store.Hold{Dependency: dependency, Source: store.SourceBreaker, Actor: by.Name, Reason: by.Reason}
	if err := hold.Check(); err != nil {
		return err
	}
	if strings.HasSuffix(dependency, "*") {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("a breaker of %q: name one dependency", dependency)}
	}
	if !to.Forced() { // a breaker may be forced before the first call; a misspelled name shows in the list of breakers
		if err := s.checkDependency(ctx, dependency); err != nil {
			return err
		}
	}
	config, err := s.breakerConfig(ctx, dependency)
	if err != nil {
		return err
	}
	return s.updateRecord(ctx, namespaceBreaker, dependency, func(r store.Record) (store.Change, error) {
		now := r.AsOf
		if r.Version == 0 {
			if now, err = s.now(ctx); err != nil {
				return store.Change{}, err
			}
		}
		circuit, moved, err := config.Force(decode(r), to, by.Name, by.Reason, now)
		if err != nil {
			return store.Change{}, &holdfast.Error{Err: holdfast.ErrConflict, Message: err.Error()}
		}
		if len(moved) == 0 {
			return store.Change{}, nil
		}
		if r.Body, err = encode(r, circuit); err != nil {
			return store.Change{}, err
		}
		return withHold(store.Change{Records: []store.Record{r}, Events: transitionEvents(dependency, by, moved)}, hold, circuit, moved, config.Flow(circuit, now)), nil
	})
}

// transitionEvents returns the events for the transitions that a person caused.
func transitionEvents(dependency string, by Actor, moved []breaker.Transition) (lines []store.Event) {
	for _, t := range moved {
		lines = append(lines, store.Event{Subject: namespaceBreaker + "/" + dependency, Name: string(t.To), Actor: t.Actor, Reason: t.Why, Request: by.Request})
	}
	return lines
}

// withHold adds to a change the hold that follows from a circuit's transitions.
func withHold(c store.Change, hold store.Hold, circuit breaker.Snapshot, moved []breaker.Transition, flow breaker.Flow) store.Change {
	if flow.Free {
		c.Lift = []store.Hold{hold}
		return c
	}
	hold.AtMost, hold.Expected = flow.AtMost, circuit.Until
	if flow.PerSecond > 0 {
		hold.Rate = &store.Rate{PerSecond: flow.PerSecond, Burst: max(1, flow.Burst), Level: 1}
	}
	hold.Reason = fmt.Sprintf("breaker %s: %s", circuit.State, moved[len(moved)-1].Why)
	c.Place = []store.Hold{hold}
	return c
}

// checkDependency refuses a dependency that no job or worker names, because its name is probably misspelled.
func (s *Service) checkDependency(ctx context.Context, dependency string) error {
	r, err := s.readRecord(ctx, namespaceBreaker, dependency)
	if err != nil || r.Version > 0 {
		return err
	}
	kinds, err := s.declared(ctx)
	if err != nil || kinds[dependency] != nil {
		return err
	}
	jobs, _, err := s.store.Jobs(ctx, store.Filter{Dependency: dependency, Limit: 1})
	if err == nil && len(jobs) == 0 {
		return unknownDependency(dependency)
	}
	return err
}

func unknownDependency(dependency string) error {
	return &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("no job or worker depends on %q: check the name; 'holdfast breakers' lists the dependencies", dependency)}
}
