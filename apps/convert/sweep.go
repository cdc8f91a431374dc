package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
)

// The sweep finds what crashes left between the steps of an upload or a conversion.
const (
	sweepAge  = time.Hour // what is younger may be somebody's who is still at it
	sweepMost = 1000      // files looked at in one round, among uploads and results each
	roomSweep = "sweep"
	nameSweep = "files"
)

// A broom is where the sweep stands, in all processes together.
type broom struct {
	// Since is when this store was first swept. A file that is older and whose job the store does not know may be another store's: somebody may have given
	// the wrong DATABASE_URL.
	Since   time.Time `json:"since"`
	Uploads string    `json:"uploads,omitempty"` // go on after these
	Results string    `json:"results,omitempty"`
}

// sweep is one round: parts go, and files whose job does not exist; a file that has no expiry gets one; and one that has expired and is still there goes when its
// job has ended. A file whose job needs it is never deleted. Rounds go on where the last one ended, and at the beginning after the end. Several processes may be
// at it at once: each step can be done twice.
func (a *app) sweep(ctx context.Context) error {
	b, record, err := a.takeBroom(ctx)
	if err != nil {
		return err
	}
	var trouble [2]error
	b.Uploads, trouble[0] = a.sweepAmong(ctx, a.uploads, b, artifactSource)
	b.Results, trouble[1] = a.sweepAmong(ctx, a.results, b, artifactResult)
	record.Body, err = json.Marshal(b)
	if err == nil {
		err = a.jobs.Keep(ctx, holdfast.Change{Records: []holdfast.Record{record}})
	}
	if errors.Is(err, holdfast.ErrConflict) { // another process has swept meanwhile, and goes on from where it came to
		err = nil
	}
	return errors.Join(trouble[0], trouble[1], err)
}

func (a *app) takeBroom(ctx context.Context) (b broom, record holdfast.Record, err error) {
	record = holdfast.Record{Room: roomSweep, Name: nameSweep}
	records, err := a.jobs.Records(ctx, roomSweep)
	for _, r := range records {
		if r.Name == nameSweep {
			record = r
			_ = json.Unmarshal(r.Body, &b) // what cannot be read is begun anew
		}
	}
	if b.Since.IsZero() {
		b.Since = time.Now().Add(-sweepAge)
	}
	return b, record, err
}

// sweepAmong looks at the next files of a place, and answers with where to go on. One that makes trouble does not keep the others.
func (a *app) sweepAmong(ctx context.Context, among blob.Store, b broom, name string) (after string, err error) {
	after = b.Uploads
	if name == artifactResult {
		after = b.Results
	}
	var trouble []error
	looked := 0
	for info, err := range among.Older(ctx, sweepAge, after) {
		if err == nil {
			err = a.sweepFile(ctx, among, b, name, info)
		}
		if err != nil {
			trouble = append(trouble, err)
		}
		if ctx.Err() != nil || len(trouble) >= 10 { // the storage or the store is in trouble, rather than a file
			return after, errors.Join(trouble...)
		}
		if looked++; looked >= sweepMost {
			return info.Key, errors.Join(trouble...)
		}
	}
	return "", errors.Join(trouble...)
}

func (a *app) sweepFile(ctx context.Context, among blob.Store, b broom, name string, info blob.Info) error {
	if info.Part {
		return a.sweepAway(ctx, among, info, "it was never finished")
	}
	id, ours := jobOf(info.Key, name)
	if !ours {
		return nil
	}
	kept, err := a.jobs.Artifacts(ctx, holdfast.ArtifactFilter{Job: id})
	if err != nil {
		return err
	}
	i := indexOf(kept, name)
	if i >= 0 && kept[i].ExpiredAt.IsZero() {
		return nil // as nearly all are
	}
	job, err := a.jobs.Job(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrPurged), errors.Is(err, holdfast.ErrNotFound) && info.MadeAt.After(b.Since):
		return a.sweepAway(ctx, among, info, "it belongs to no job")
	case errors.Is(err, holdfast.ErrNotFound):
		return nil
	case err != nil:
		return err
	case i >= 0 && job.State.Terminal() && !info.MadeAt.After(kept[i].ExpiredAt):
		return a.sweepAway(ctx, among, info, "it has expired")
	case !job.State.Terminal() && (i >= 0 || name == artifactResult):
		return nil // whoever works on the job sees to it
	case name == artifactSource:
		return a.keepSource(ctx, id, info.Key, info.Size)
	}
	return a.keepResult(ctx, id, info.Key, info.Size)
}

func (a *app) sweepAway(ctx context.Context, among blob.Store, info blob.Info, why string) error {
	if err := among.Delete(ctx, info.Key); err != nil {
		return err
	}
	a.log.Info("a file was swept away: "+why, "event", "swept", "file", info.Key, "bytes", info.Size)
	return nil
}

// jobOf is whose file it is, going by its name.
func jobOf(key, name string) (id holdfast.ID, ours bool) {
	stem, _, _ := strings.Cut(key, ".")
	id, err := holdfast.ParseID(stem)
	if name == artifactSource {
		return id, err == nil && key == sourceKey(id)
	}
	return id, err == nil && key == resultKey(id)
}
