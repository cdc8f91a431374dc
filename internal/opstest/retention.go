package opstest

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func rulesOfRetention(s *scene) {
	own := s.another(ops.Config{Retention: []store.RetentionRule{{Name: "own", For: time.Hour}}})
	r, err := own.Retention(s.ctx)
	s.must(err)
	if r.Applied || len(r.Rules) != 1 || r.Rules[0].Name != "own" {
		s.Errorf("without applied rules they are %+v", r)
	}
	s.expect(own.ApplyRetention(s.ctx, nil, byPerson("ann", "")), holdfast.ErrConflict)
	rules := []store.RetentionRule{{Name: "mails", Kind: "mail", State: holdfast.Complete, For: 0}, {Name: "rest", For: store.Forever}}
	s.expect(s.operator.ApplyRetention(s.ctx, rules, byPerson("", "")), holdfast.ErrInvalid)
	s.expect(s.operator.ApplyRetention(s.ctx, []store.RetentionRule{{Name: "x", For: -5}}, byPerson("ann", "")), holdfast.ErrInvalid)
	s.expect(s.operator.ApplyRetention(s.ctx, []store.RetentionRule{{Name: "x"}, {Name: "x"}}, byPerson("ann", "")), holdfast.ErrInvalid)
	s.must(s.operator.ApplyRetention(s.ctx, rules, byPerson("ann", "the disk is small")))
	s.must(s.operator.ApplyRetention(s.ctx, rules, byPerson("bob", "nothing changes")))
	if r, err = own.Retention(s.ctx); err != nil || !r.Applied || r.Version != 1 || len(r.Rules) != 2 || r.Rules[1].For != store.Forever || len(r.Story) != 1 {
		s.Errorf("the rules are %+v, %v", r, err)
	}
	kept, gone := s.failed(), s.enqueue()
	s.settle(s.claim(gone), complete)
	purged, err := s.store.Purge(s.ctx, store.Purge{Rules: r.Rules, Scan: 100})
	s.must(err)
	if purged.Jobs != 1 {
		s.Fatalf("the rules purged %+v", purged)
	}
	s.expectState(kept, holdfast.Failed)
	_, err = s.operator.Job(s.ctx, gone)
	s.expect(err, holdfast.ErrPurged)
	s.expectReasons(gone, "purged")
	e, err := s.operator.Explain(s.ctx, gone)
	s.must(err)
	if e.Job.Kind != "mail" || e.Job.State != holdfast.Complete || !strings.Contains(e.Reasons[0].Text, "by rule mails") {
		s.Errorf("a purged job is explained by %+v", e)
	}
	stones, _, err := s.operator.Tombstones(s.ctx, store.TombstoneFilter{Kind: "mail"})
	s.must(err)
	if len(stones) != 1 || stones[0].Job != gone || stones[0].Rule != "mails" {
		s.Errorf("the tombstones are %+v", stones)
	}
	if r, err = s.operator.Retention(s.ctx); err != nil || len(r.Counts) != 1 || r.Counts[0].Jobs != 1 || r.Counts[0].Rule != "mails" {
		s.Errorf("the counts are %+v, %v", r.Counts, err)
	}
	s.must(s.operator.ApplyRetention(s.ctx, nil, byPerson("ann", "back to normal")))
	if r, err = own.Retention(s.ctx); err != nil || r.Applied || r.Rules[0].Name != "own" {
		s.Errorf("the rules are %+v, %v", r, err)
	}
	s.expectEvents("retention", "reset", "applied")
}
