package inspect

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
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
	mail := holdfast.Tombstone{Job: id(14), Kind: "mail", Queue: "default", Owner: "ann", Group: id(201), GroupState: holdfast.GroupPartial, State: holdfast.Complete, FinishedAt: ms(-895), PurgedAt: ms(-50), Rule: "a week"}
	report := holdfast.Tombstone{Job: id(15), Kind: "report", Queue: "bulk", State: holdfast.Failed, Code: "BAD", FinishedAt: ms(-994), PurgedAt: ms(-50), Rule: "a day"}
	onBoth(t, func(t *testing.T, i *Inspector, _ func(string)) {
		for _, c := range []struct {
			filter holdfast.TombstoneFilter
			want   []holdfast.Tombstone
		}{
			{holdfast.TombstoneFilter{}, []holdfast.Tombstone{report, mail}}, {holdfast.TombstoneFilter{Job: id(14)}, []holdfast.Tombstone{mail}},
			{holdfast.TombstoneFilter{Kind: "report"}, []holdfast.Tombstone{report}}, {holdfast.TombstoneFilter{Job: id(14), Kind: "report"}, nil},
		} {
			stones, cursor, err := i.Tombstones(t.Context(), c.filter)
			if diff := cmp.Diff(c.want, stones); diff != "" || err != nil || cursor != "" {
				t.Errorf("%+v: cursor %q, error %v, difference %s", c.filter, cursor, err, diff)
			}
		}
		first, cursor, err := i.Tombstones(t.Context(), holdfast.TombstoneFilter{Limit: 1})
		second, none, err2 := i.Tombstones(t.Context(), holdfast.TombstoneFilter{Limit: 1, Cursor: cursor})
		if diff := cmp.Diff([]holdfast.Tombstone{report, mail}, append(first, second...)); diff != "" || err != nil || err2 != nil || none != "" {
			t.Errorf("errors %v, %v, cursor %q, difference %s", err, err2, none, diff)
		}
		for _, f := range []holdfast.TombstoneFilter{{Limit: -1}, {Cursor: "?"}, {Cursor: "AAAA"}, {Kind: "\xff"}} {
			if _, _, err := i.Tombstones(t.Context(), f); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%+v was answered with %v", f, err)
			}
		}
		counts, err := i.PurgeCounts(t.Context())
		want := []holdfast.PurgeCount{{Rule: "a day", Kind: "report", State: holdfast.Failed, Code: "BAD", Jobs: 1, Last: ms(-50)}, {Rule: "a week", Kind: "mail", State: holdfast.Complete, Jobs: 5, Last: ms(-50)}}
		if diff := cmp.Diff(want, counts); diff != "" || err != nil {
			t.Errorf("error %v, difference %s", err, diff)
		}
	})
}

func TestArtifactsAreReadByJobOrByWhenTheirTimeIsUp(t *testing.T) {
	ms := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Millisecond) }
	result := holdfast.Artifact{Job: id(11), Name: "Result", Ref: "s3://b", Size: 20, CreatedAt: ms(-980), ExpireAt: ms(1)}
	source := holdfast.Artifact{Job: id(11), Name: "source", Ref: "s3://a", Size: 10, CreatedAt: ms(-990), ExpireAt: ms(-1)}
	gone := holdfast.Artifact{Job: id(12), Name: "source", Ref: "s3://c", Size: 30, CreatedAt: ms(-990), ExpireAt: ms(-5), ExpiredAt: ms(-4)}
	z := holdfast.Artifact{Job: id(12), Name: "z", Ref: "s3://d", CreatedAt: ms(-990), ExpireAt: ms(-3)}
	onBoth(t, func(t *testing.T, i *Inspector, _ func(string)) {
		for _, c := range []struct {
			filter holdfast.ArtifactFilter
			want   []holdfast.Artifact
		}{
			{holdfast.ArtifactFilter{Job: id(11)}, []holdfast.Artifact{result, source}}, {holdfast.ArtifactFilter{Job: id(12)}, []holdfast.Artifact{gone, z}},
			{holdfast.ArtifactFilter{Due: true}, []holdfast.Artifact{z, source}}, {holdfast.ArtifactFilter{Due: true, Limit: 1}, []holdfast.Artifact{z}}, {holdfast.ArtifactFilter{Job: id(13)}, nil},
		} {
			artifacts, err := i.Artifacts(t.Context(), c.filter)
			if diff := cmp.Diff(c.want, artifacts); diff != "" || err != nil {
				t.Errorf("%+v: error %v, difference %s", c.filter, err, diff)
			}
		}
		for _, f := range []holdfast.ArtifactFilter{{}, {Job: id(11), Due: true}, {Due: true, Limit: -1}} {
			if _, err := i.Artifacts(t.Context(), f); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%+v was answered with %v", f, err)
			}
		}
	})
}
