package inspect

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestAPurgedJobDiffersFromOneThatNeverExisted(t *testing.T) {
	onBoth(t, func(t *testing.T, i *Inspector, _ func(string)) {
		_, job := i.Job(t.Context(), id(14))
		_, history := i.History(t.Context(), id(14))
		_, ahead := i.Ahead(t.Context(), id(14))
		for _, err := range []error{job, history, ahead} {
			if !errors.Is(err, holdfast.ErrPurged) || errors.Is(err, holdfast.ErrNotFound) || !strings.Contains(err.Error(), "2026-05-04 11:59:59 UTC") || !strings.Contains(err.Error(), `"a week"`) {
				t.Errorf("a purged job: %v", err)
			}
		}
		if _, err := i.Job(t.Context(), id(77)); !errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
			t.Errorf("a job that never was: %v", err)
		}
	})
}

func TestTombstonesAndCountsSayWhatWasPurged(t *testing.T) {
	ms := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Millisecond) }
	mail := store.Tombstone{Job: id(14), Kind: "mail", Queue: "default", Owner: "ann", Group: id(201), GroupState: holdfast.GroupPartial, State: holdfast.Complete, FinishedAt: ms(-895), PurgedAt: ms(-50), Rule: "a week"}
	report := store.Tombstone{Job: id(15), Kind: "report", Queue: "bulk", State: holdfast.Failed, Code: "BAD", FinishedAt: ms(-994), PurgedAt: ms(-50), Rule: "a day"}
	onBoth(t, func(t *testing.T, i *Inspector, _ func(string)) {
		for _, c := range []struct {
			filter store.TombstoneFilter
			want   []store.Tombstone
		}{
			{store.TombstoneFilter{}, []store.Tombstone{report, mail}}, {store.TombstoneFilter{Job: id(14)}, []store.Tombstone{mail}},
			{store.TombstoneFilter{Kind: "report"}, []store.Tombstone{report}}, {store.TombstoneFilter{Job: id(14), Kind: "report"}, nil},
		} {
			stones, cursor, err := i.Tombstones(t.Context(), c.filter)
			if diff := cmp.Diff(c.want, stones); diff != "" || err != nil || cursor != "" {
				t.Errorf("%+v: cursor %q, error %v, difference %s", c.filter, cursor, err, diff)
			}
		}
		first, cursor, err := i.Tombstones(t.Context(), store.TombstoneFilter{Limit: 1})
		second, none, err2 := i.Tombstones(t.Context(), store.TombstoneFilter{Limit: 1, Cursor: cursor})
		if diff := cmp.Diff([]store.Tombstone{report, mail}, append(first, second...)); diff != "" || err != nil || err2 != nil || none != "" {
			t.Errorf("errors %v, %v, cursor %q, difference %s", err, err2, none, diff)
		}
		for _, f := range []store.TombstoneFilter{{Limit: -1}, {Cursor: "?"}, {Cursor: "AAAA"}, {Kind: "\xff"}} {
			if _, _, err := i.Tombstones(t.Context(), f); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%+v was answered with %v", f, err)
			}
		}
		counts, err := i.PurgeCounts(t.Context())
		want := []store.PurgeCount{{Rule: "a day", Kind: "report", State: holdfast.Failed, Code: "BAD", Jobs: 1, Last: ms(-50)}, {Rule: "a week", Kind: "mail", State: holdfast.Complete, Jobs: 5, Last: ms(-50)}}
		if diff := cmp.Diff(want, counts); diff != "" || err != nil {
			t.Errorf("error %v, difference %s", err, diff)
		}
	})
}

func TestArtifactsAreReadByJobOrByWhenTheirTimeIsUp(t *testing.T) {
	ms := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Millisecond) }
	result := store.Artifact{Job: id(11), Name: "Result", Ref: "s3://b", Size: 20, CreatedAt: ms(-980), ExpireAt: ms(1)}
	source := store.Artifact{Job: id(11), Name: "source", Ref: "s3://a", Size: 10, CreatedAt: ms(-990), ExpireAt: ms(-1)}
	gone := store.Artifact{Job: id(12), Name: "source", Ref: "s3://c", Size: 30, CreatedAt: ms(-990), ExpireAt: ms(-5), ExpiredAt: ms(-4)}
	z := store.Artifact{Job: id(12), Name: "z", Ref: "s3://d", CreatedAt: ms(-990), ExpireAt: ms(-3)}
	onBoth(t, func(t *testing.T, i *Inspector, _ func(string)) {
		for _, c := range []struct {
			filter store.ArtifactFilter
			want   []store.Artifact
		}{
			{store.ArtifactFilter{Job: id(11)}, []store.Artifact{result, source}}, {store.ArtifactFilter{Job: id(12)}, []store.Artifact{gone, z}},
			{store.ArtifactFilter{Due: true}, []store.Artifact{z, source}}, {store.ArtifactFilter{Due: true, Limit: 1}, []store.Artifact{z}}, {store.ArtifactFilter{Job: id(13)}, nil},
		} {
			artifacts, err := i.Artifacts(t.Context(), c.filter)
			if diff := cmp.Diff(c.want, artifacts); diff != "" || err != nil {
				t.Errorf("%+v: error %v, difference %s", c.filter, err, diff)
			}
		}
		for _, f := range []store.ArtifactFilter{{}, {Job: id(11), Due: true}, {Due: true, Limit: -1}} {
			if _, err := i.Artifacts(t.Context(), f); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%+v was answered with %v", f, err)
			}
		}
	})
}
