package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// An endedJob has ended, with everything that a retention rule can match.
type endedJob struct {
	id          holdfast.ID
	state       holdfast.State
	kind, owner string
	code        string
	group       holdfast.GroupState
	old         bool // ended an hour and a half ago
}

// makeEndedJobs makes jobs of every sort: state, code, kind and owner, and members of groups of every outcome.
func (s *scene) makeEndedJobs(old bool) []endedJob {
	s.Helper()
	var all []endedJob
	var drafts []holdfast.Draft
	add := func(d endedJob, group holdfast.ID) {
		d.id, d.old = holdfast.NewID(), old
		all = append(all, d)
		drafts = append(drafts, holdfast.Draft{ID: d.id, Kind: d.kind, Owner: d.owner, Group: group})
	}
	ways := []endedJob{{state: holdfast.Complete}, {state: holdfast.Failed, code: "BROKEN"}, {state: holdfast.Failed, code: "FLAKY"}, {state: holdfast.Cancelled}}
	for _, kind := range []string{"mail", "pdf"} {
		for _, owner := range []string{"", "acme"} {
			for _, d := range ways {
				d.kind, d.owner = kind, owner
				add(d, holdfast.ID{})
			}
		}
	}
	var groups []holdfast.ID
	for outcome, members := range map[holdfast.GroupState][]endedJob{
		holdfast.GroupReady: {ways[0], ways[0]}, holdfast.GroupPartial: {ways[0], ways[1]}, holdfast.GroupFailed: {ways[2], ways[3]},
	} {
		group := s.gather()
		groups = append(groups, group)
		for i, d := range members {
			d.kind, d.group = []string{"mail", "pdf"}[i], outcome
			add(d, group)
		}
	}
	s.enqueueAll(drafts...)
	s.endAll(all)
	for _, group := range groups {
		s.seal(group)
	}
	s.advanceGroups()
	return all
}

// endAll ends jobs with the given states.
func (s *scene) endAll(all []endedJob) {
	s.Helper()
	how := map[holdfast.ID]endedJob{}
	for _, d := range all {
		how[d.id] = d
	}
	for leases := s.claim(1000); len(leases) > 0; leases = s.claim(1000) {
		var settlements []store.Settlement
		for _, l := range leases {
			e := ends(l, how[l.ID].state)
			if e.To == holdfast.Failed {
				e = fails(l, how[l.ID].code)
			}
			settlements = append(settlements, e)
		}
		s.settle(settlements...)
	}
}

// matches reports whether a rule matches, independently of the implementation.
func (d *endedJob) matches(r store.RetentionRule) bool {
	for _, c := range [][2]string{{string(r.State), string(d.state)}, {r.Kind, d.kind}, {r.Owner, d.owner}, {r.Code, d.code}, {string(r.Group), string(d.group)}} {
		if c[0] != "" && c[0] != c[1] {
			return false
		}
	}
	return r.For == 0 || r.For == time.Hour && d.old
}

var matrixLaws = []law{
	{"a rule purges matching jobs that are old enough, and no others: by state, kind, owner, code and outcome", func(s *scene) {
		for _, rule := range []store.RetentionRule{
			{}, {State: holdfast.Complete}, {State: holdfast.Failed}, {State: holdfast.Cancelled}, {Kind: "pdf"}, {Owner: "acme"}, {Code: "FLAKY"},
			{Group: holdfast.GroupReady}, {Group: holdfast.GroupPartial}, {Group: holdfast.GroupFailed}, {Group: holdfast.GroupExpired},
			{State: holdfast.Failed, Kind: "pdf"}, {State: holdfast.Complete, Owner: "acme"}, {State: holdfast.Failed, Group: holdfast.GroupPartial},
			{State: holdfast.Failed, Kind: "mail", Owner: "acme", Code: "BROKEN"}, {State: holdfast.Complete, Code: "BROKEN"}, {Kind: "fax"},
		} {
			s.Wipe()
			all := s.makeEndedJobs(true)
			s.Advance(90 * time.Minute)
			all = append(all, s.makeEndedJobs(false)...)
			for _, keep := range []time.Duration{store.Forever, time.Hour, 0} { // each rule gets what the one before it left
				rule.For = keep
				rule.Name = "rule" + keep.String()
				all = s.purgeAndCompare(all, rule)
			}
		}
	}},
}

// purgeAndCompare purges by a rule, compares what was purged with what should be, and returns what is left.
func (s *scene) purgeAndCompare(all []endedJob, rule store.RetentionRule) (left []endedJob) {
	s.Helper()
	gone, counts := map[holdfast.ID]bool{}, map[string]int{}
	for name, n := range s.purgeCounts() {
		if strings.HasPrefix(name, rule.Name+" ") {
			s.Fatalf("%q was counted before: %d", name, n)
		}
	}
	for _, d := range all {
		if d.matches(rule) {
			gone[d.id] = true
			counts[strings.Join([]string{rule.Name, d.kind, string(d.state), d.code}, " ")]++
		} else {
			left = append(left, d)
		}
	}
	did := s.purge(rules(rule))
	same(s, fmt.Sprintf("purged by %+v", rule), []int{did.Jobs, did.Rules[rule.Name]}, []int{len(gone), len(gone)})
	still := map[holdfast.ID]bool{}
	for _, job := range s.jobs(store.Filter{Limit: 200}) {
		still[job.ID] = true
	}
	for _, d := range all {
		if still[d.id] == gone[d.id] {
			s.Fatalf("%+v: of the job %+v is there: %v", rule, d, still[d.id])
		}
		if stones := s.tombstones(store.TombstoneFilter{Job: d.id}); gone[d.id] {
			same(s, "tombstones", len(stones), 1)
			same(s, "tombstone", []any{stones[0].Kind, stones[0].Owner, stones[0].State, stones[0].Code, stones[0].GroupState, stones[0].Rule}, []any{d.kind, d.owner, d.state, d.code, d.group, rule.Name})
		}
	}
	for name, n := range s.purgeCounts() {
		if strings.HasPrefix(name, rule.Name+" ") && counts[name] != n {
			s.Fatalf("%+v: %q was counted %d times, want %d", rule, name, n, counts[name])
		}
	}
	return left
}

// Data that is deleted by age alone.
var deleteHistoryLaws = []law{
	{"tombstones are deleted by age, the oldest first; their counts remain, and the job is not found afterwards", func(s *scene) {
		var dead []holdfast.ID
		for range 3 {
			dead = append(dead, s.fail().ID)
			s.purge(atOnce())
			s.Advance(time.Hour)
		}
		listed := s.tombstones(store.TombstoneFilter{Limit: 1})
		same(s, "last purged first", []holdfast.ID{listed[0].Job, listed[1].Job, listed[2].Job}, []holdfast.ID{dead[2], dead[1], dead[0]})
		s.deleteHistory(store.HistoryTombstones, 90*time.Minute, 1, 1)
		s.expectPurged(dead[1], "all")
		s.deleteHistory(store.HistoryTombstones, 90*time.Minute, 100, 1)
		s.deleteHistory(store.HistoryTombstones, 90*time.Minute, 100, 0)
		_, err := s.Store.Job(s.ctx, dead[0])
		s.expectError(err, holdfast.ErrNotFound)
		s.expectPurged(dead[2], "all")
		same(s, "counts", s.purgeCounts(), map[string]int{"all mail failed BROKEN": 3})
	}},
	{"counts of failures by time are deleted by age; the error group and its total remain", func(s *scene) {
		s.failFlaky("v1")
		s.Advance(24 * time.Hour)
		s.failFlaky("v2")
		s.promote(10)
		s.deleteHistory(store.HistoryCounts, time.Hour, 100, 1)
		s.deleteHistory(store.HistoryCounts, time.Hour, 100, 0)
		g := s.errorGroup(flaky)
		same(s, "error group", []any{g.Failures, g.Versions}, []any{2, []string{"v2"}})
	}},
	{"the feed is not deleted beyond what groups have followed", func(s *scene) {
		group, _ := s.sealedGroup(1)
		s.settle(completes(s.claimOne()))
		s.must(sequenceOn(s, s.Store))
		s.Advance(time.Hour)
		_, err := s.Store.DeleteHistory(s.ctx, store.HistoryFeed, time.Minute, 100)
		s.must(err)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"an unknown history is refused", func(s *scene) {
		_, err := s.Store.DeleteHistory(s.ctx, "attic", time.Hour, 10)
		s.expectError(err, holdfast.ErrInvalid)
	}},
}

func (s *scene) deleteHistory(history string, older time.Duration, limit, want int) {
	s.Helper()
	n, err := s.Store.DeleteHistory(s.ctx, history, older, limit)
	s.must(err)
	same(s, "forgotten of "+history, n, want)
}
