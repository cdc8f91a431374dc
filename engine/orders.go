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
)

const (
	dutiesBeat  = time.Second
	reportEvery = 5 * time.Second
	reportStale = time.Minute // a worker that has said nothing for so long is gone
)

// reporting is what the duty of duties remembers; its alone.
type reporting struct {
	last    map[string]duty.Report // as it was last kept
	version int
	spoke   time.Time // when it last reported,
	tidied  time.Time // and looked for reports of the gone, by this process's clock
}

// duties reads what people order of duties, ends pauses whose time is up, and reports how the duties of this process go.
func (e *Engine) duties(context.Context) error {
	err := e.readOrders()
	e.firstOrders.Do(func() { close(e.ordered) }) // also when they could not be read: no store, no rounds; and then they come a second late
	if time.Since(e.reporting.spoke) >= reportEvery {
		e.reporting.spoke = time.Now()
		err = errors.Join(err, e.reportDuties())
	}
	return err
}

// untilOrdered waits until orders were asked for once. It is false when ctx ended first.
func (e *Engine) untilOrdered(ctx context.Context, name string) bool {
	if !duty.Pausable(name) {
		return true
	}
	select {
	case <-e.ordered:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *Engine) readOrders() error {
	records, err := e.records(duty.RoomOrder)
	if err != nil {
		return err
	}
	now, orders := e.clock.now(), make(map[string]duty.Order, len(records))
	for _, r := range records {
		var o duty.Order
		if err := json.Unmarshal(r.Body, &o); err != nil {
			e.trouble("duties", fmt.Errorf("the order for duty %s cannot be read and is left out: %w", r.Name, err))
			continue
		}
		orders[r.Name] = o
		if o.Over(now) {
			if err := e.resume(r, o); err != nil {
				e.trouble("duties", err)
			}
		}
	}
	for _, s := range e.allStations() {
		s.obey(orders[s.name], now)
	}
	return nil
}

func (e *Engine) allStations() []*station {
	e.stationing.Lock()
	defer e.stationing.Unlock()
	return slices.Collect(maps.Values(e.stations))
}

// resume writes down that a pause has ended by itself. Whoever is too late says nothing.
func (e *Engine) resume(r holdfast.Record, o duty.Order) error {
	body, err := json.Marshal(o.Resumed())
	if err != nil {
		return err
	}
	r.Body = body
	err = e.keepChange(holdfast.Change{
		Records: []holdfast.Record{r},
		Events: []holdfast.Event{{Subject: "duty/" + r.Name, Name: "resumed", Actor: actorSystem,
			Reason: "the pause was until " + o.Until.UTC().Format(time.RFC3339)}},
	})
	if errors.Is(err, holdfast.ErrConflict) {
		return nil
	}
	return err
}

// reportDuties keeps how the duties of this process go, if that has changed.
func (e *Engine) reportDuties() error {
	all := make(map[string]duty.Report)
	for _, s := range e.allStations() {
		all[s.name] = s.report(&e.clock)
	}
	if !maps.Equal(all, e.reporting.last) {
		if err := e.keepReport(all); err != nil {
			return err
		}
	}
	if time.Since(e.reporting.tidied) < reportStale {
		return nil
	}
	e.reporting.tidied = time.Now()
	return e.forgetReports()
}

func (e *Engine) keepReport(all map[string]duty.Report) error {
	body, err := json.Marshal(duty.Reports{Worker: e.worker, At: e.clock.now().UTC().Round(time.Millisecond), Duties: all})
	if err != nil {
		return err
	}
	r := &e.reporting
	err = e.keepChange(holdfast.Change{Records: []holdfast.Record{{Room: duty.RoomReport, Name: e.worker, Version: r.version, Body: body}}})
	switch {
	case err == nil:
		r.version++
		r.last = all
	case errors.Is(err, holdfast.ErrConflict): // somebody took this worker for gone, or an answer was lost
		return e.findReport()
	}
	return err
}

// findReport looks which version of its report the store holds, for the next time.
func (e *Engine) findReport() error {
	records, err := e.records(duty.RoomReport)
	if err != nil {
		return err
	}
	e.reporting.version = 0
	for _, r := range records {
		if r.Name == e.worker {
			e.reporting.version = r.Version
		}
	}
	return nil
}

// forgetReports removes what gone workers left behind.
func (e *Engine) forgetReports() error {
	records, err := e.records(duty.RoomReport)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Name == e.worker || r.AsOf.Sub(r.KeptAt) < reportStale {
			continue
		}
		r.Body = nil
		if err := e.keepChange(holdfast.Change{Records: []holdfast.Record{r}}); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
	return nil
}

// forgetReport takes back this worker's report when it leaves.
func (e *Engine) forgetReport() error {
	r := &e.reporting
	if r.version == 0 {
		return nil
	}
	err := e.keepChange(holdfast.Change{Records: []holdfast.Record{{Room: duty.RoomReport, Name: e.worker, Version: r.version}}})
	if errors.Is(err, holdfast.ErrConflict) {
		return nil
	}
	return err
}
