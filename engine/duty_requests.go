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

const (
	dutiesInterval = time.Second
	reportEvery    = 5 * time.Second
	reportStale    = time.Minute // a worker that has not reported for this long is gone
)

// dutyReports is the state of the duty "duties"; no other goroutine uses it. Times are by this process's clock.
type dutyReports struct {
	last       map[string]duty.Report // as last saved
	version    int                    // of the saved record; 0 if there is none
	reportedAt time.Time
	cleanedAt  time.Time // when stale reports of other workers were last deleted
}

// duties applies what operators requested of duties, ends pauses whose time is up, and saves a report on the duties of this process.
func (e *Engine) duties(context.Context) error {
	err := e.readDutyRequests()
	e.requestsReadOnce.Do(func() { close(e.requestsRead) }) // also if they could not be read: without the store no duty gets anything done, and the next read follows within a second
	if time.Since(e.dutyReports.reportedAt) >= reportEvery {
		e.dutyReports.reportedAt = time.Now()
		err = errors.Join(err, e.reportDuties())
	}
	return err
}

// waitForRequests waits until requests were read once, for a duty that can be paused. It returns false if ctx ended first.
func (e *Engine) waitForRequests(ctx context.Context, name string) bool {
	if !duty.Pausable(name) {
		return true
	}
	select {
	case <-e.requestsRead:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *Engine) readDutyRequests() error {
	records, err := e.records(duty.RoomOrder)
	if err != nil {
		return err
	}
	now, requests := e.clock.now(), make(map[string]duty.Control, len(records))
	for _, r := range records {
		var o duty.Control
		if err := json.Unmarshal(r.Body, &o); err != nil {
			e.dutyProblem("duties", fmt.Errorf("the request for duty %s cannot be read and is ignored: %w", r.Name, err))
			continue
		}
		requests[r.Name] = o
		if o.Over(now) {
			if err := e.endPause(r, o); err != nil {
				e.dutyProblem("duties", err)
			}
		}
	}
	for _, c := range e.allDutyControls() {
		c.apply(requests[c.name], now)
	}
	return nil
}

func (e *Engine) allDutyControls() []*dutyControl {
	e.controlsMu.Lock()
	defer e.controlsMu.Unlock()
	return slices.Collect(maps.Values(e.dutyControls))
}

// endPause records that a pause has ended because its time is up. The record is changed by compare-and-set, so one process writes the event; a
// conflict means that another process did.
func (e *Engine) endPause(r store.Record, o duty.Control) error {
	body, err := json.Marshal(o.Resumed())
	if err != nil {
		return err
	}
	r.Body = body
	err = e.keepChange(store.Change{
		Records: []store.Record{r},
		Events: []store.Event{{Subject: "duty/" + r.Name, Name: "resumed", Actor: actorSystem,
			Reason: "the pause was until " + o.Until.UTC().Format(time.RFC3339)}},
	})
	if errors.Is(err, holdfast.ErrConflict) {
		return nil
	}
	return err
}

// reportDuties saves how the duties of this process run, if that has changed, and once a minute deletes the reports of workers that are gone.
func (e *Engine) reportDuties() error {
	all := make(map[string]duty.Report)
	for _, c := range e.allDutyControls() {
		all[c.name] = c.report(&e.clock)
	}
	if !maps.Equal(all, e.dutyReports.last) {
		if err := e.saveReport(all); err != nil {
			return err
		}
	}
	if time.Since(e.dutyReports.cleanedAt) < reportStale {
		return nil
	}
	e.dutyReports.cleanedAt = time.Now()
	return e.deleteStaleReports()
}

func (e *Engine) saveReport(all map[string]duty.Report) error {
	body, err := json.Marshal(duty.Reports{Worker: e.worker, At: e.clock.now().UTC().Round(time.Millisecond), Duties: all})
	if err != nil {
		return err
	}
	r := &e.dutyReports
	err = e.keepChange(store.Change{Records: []store.Record{{Namespace: duty.RoomReport, Name: e.worker, Version: r.version, Body: body}}})
	switch {
	case err == nil:
		r.version++
		r.last = all
	case errors.Is(err, holdfast.ErrConflict): // another worker took this one for gone and deleted its report, or the answer to a write was lost
		return e.refreshReportVersion()
	}
	return err
}

// refreshReportVersion reads the version of this worker's report, for the next write.
func (e *Engine) refreshReportVersion() error {
	records, err := e.records(duty.RoomReport)
	if err != nil {
		return err
	}
	e.dutyReports.version = 0
	for _, r := range records {
		if r.Name == e.worker {
			e.dutyReports.version = r.Version
		}
	}
	return nil
}

// deleteStaleReports deletes the reports of workers that are gone.
func (e *Engine) deleteStaleReports() error {
	records, err := e.records(duty.RoomReport)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Name == e.worker || r.AsOf.Sub(r.KeptAt) < reportStale {
			continue
		}
		r.Body = nil
		if err := e.keepChange(store.Change{Records: []store.Record{r}}); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
	return nil
}

// deleteReport deletes this worker's report when it stops.
func (e *Engine) deleteReport() error {
	r := &e.dutyReports
	if r.version == 0 {
		return nil
	}
	err := e.keepChange(store.Change{Records: []store.Record{{Namespace: duty.RoomReport, Name: e.worker, Version: r.version}}})
	if errors.Is(err, holdfast.ErrConflict) {
		return nil
	}
	return err
}
