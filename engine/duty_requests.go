package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/store"
)

const dutiesInterval = time.Second

// obeyRequests applies what operators requested of duties, ends pauses whose time is up, and saves a report on the duties of this process.
func (d *dutyRunner) obeyRequests(context.Context) error {
	err := d.readRequests()
	d.requestsReadOnce.Do(func() { close(d.requestsRead) }) // also if they could not be read: without the store no duty gets anything done, and the next read follows within a second
	if time.Since(d.reporter.reportedAt) >= reportEvery {
		d.reporter.reportedAt = time.Now()
		err = errors.Join(err, d.reporter.report(d.reports()))
	}
	return err
}

// waitForRequests waits until requests were read once, for a duty that can be paused. It returns false if ctx ended first.
func (d *dutyRunner) waitForRequests(ctx context.Context, name string) bool {
	if !duty.Pausable(name) {
		return true
	}
	select {
	case <-d.requestsRead:
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *dutyRunner) readRequests() error {
	records, err := d.records(duty.NamespaceControl)
	if err != nil {
		return err
	}
	now, requests := d.clock.now(), make(map[string]duty.Control, len(records))
	for _, r := range records {
		var o duty.Control
		if err := json.Unmarshal(r.Body, &o); err != nil {
			d.problem("duties", fmt.Errorf("the request for duty %s cannot be read and is ignored: %w", r.Name, err))
			continue
		}
		requests[r.Name] = o
		if o.Over(now) {
			if err := d.endPause(r, o); err != nil {
				d.problem("duties", err)
			}
		}
	}
	for _, c := range d.allControls() {
		c.apply(requests[c.name], now)
	}
	return nil
}

// reports returns how the duties run, by name.
func (d *dutyRunner) reports() map[string]duty.Report {
	all := make(map[string]duty.Report)
	for _, c := range d.allControls() {
		all[c.name] = c.report(&d.clock)
	}
	return all
}

func (d *dutyRunner) allControls() []*dutyControl {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.controls))
}

// endPause records that a pause has ended because its time is up. The record is changed by compare-and-set, so one process writes the event; a
// conflict means that another process did.
func (d *dutyRunner) endPause(r store.Record, o duty.Control) error {
	body, err := json.Marshal(o.Resumed())
	if err != nil {
		return err
	}
	r.Body = body
	err = d.keepChange(store.Change{
		Records: []store.Record{r},
		Events: []store.Event{{Subject: "duty/" + r.Name, Name: "resumed", Actor: actorSystem,
			Reason: "the pause was until " + o.Until.UTC().Format(time.RFC3339)}},
	})
	if errors.Is(err, holdfast.ErrConflict) {
		return nil
	}
	return err
}
