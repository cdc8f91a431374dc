package engine

import (
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/store"
)

const (
	reportEvery = 5 * time.Second
	reportStale = time.Minute // a worker that has not reported for this long is gone
)

// A dutyReporter saves how the duties of this process run, for operators to see. Only the duty "duties" uses it, and the engine when that duty has ended.
// Times are by this process's clock.
type dutyReporter struct {
	*core
	last       map[string]duty.Report // as last saved
	version    int                    // of the saved record; 0 if there is none
	reportedAt time.Time
	cleanedAt  time.Time // when stale reports of other workers were last deleted
}

// report saves how the duties of this process run, if that has changed, and once a minute deletes the reports of workers that are gone.
func (r *dutyReporter) report(all map[string]duty.Report) error {
	if !maps.Equal(all, r.last) {
		if err := r.save(all); err != nil {
			return err
		}
	}
	if time.Since(r.cleanedAt) < reportStale {
		return nil
	}
	r.cleanedAt = time.Now()
	return r.deleteStale()
}

func (r *dutyReporter) save(all map[string]duty.Report) error {
	body, err := json.Marshal(duty.Reports{Worker: r.worker, At: r.clock.now().UTC().Round(time.Millisecond), Duties: all})
	if err != nil {
		return err
	}
	err = r.keepChange(store.Change{Records: []store.Record{{Namespace: duty.NamespaceReport, Name: r.worker, Version: r.version, Body: body}}})
	switch {
	case err == nil:
		r.version++
		r.last = all
	case errors.Is(err, holdfast.ErrConflict): // another worker took this one for gone and deleted its report, or the answer to a write was lost
		return r.refreshVersion()
	}
	return err
}

// refreshVersion reads the version of this worker's report, for the next write.
func (r *dutyReporter) refreshVersion() error {
	records, err := r.records(duty.NamespaceReport)
	if err != nil {
		return err
	}
	r.version = 0
	for _, record := range records {
		if record.Name == r.worker {
			r.version = record.Version
		}
	}
	return nil
}

// deleteStale deletes the reports of workers that are gone.
func (r *dutyReporter) deleteStale() error {
	records, err := r.records(duty.NamespaceReport)
	if err != nil {
		return err
	}
	for _, record := range records {
		if record.Name == r.worker || record.AsOf.Sub(record.KeptAt) < reportStale {
			continue
		}
		record.Body = nil
		if err := r.keepChange(store.Change{Records: []store.Record{record}}); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
	return nil
}

// delete deletes this worker's report when it stops.
func (r *dutyReporter) delete() error {
	if r.version == 0 {
		return nil
	}
	err := r.keepChange(store.Change{Records: []store.Record{{Namespace: duty.NamespaceReport, Name: r.worker, Version: r.version}}})
	if errors.Is(err, holdfast.ErrConflict) {
		return nil
	}
	return err
}
