package opstest

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

func editsOfAQueuedJob(s *scene) {
	id := s.enqueue(func(d *holdfast.Draft) { d.Args = []byte(`{"to":"ann","cc":"bob"}`) })
	seen := s.expectState(id, holdfast.Queued)
	queue, tags, priority, attempts, delay := "bulk", []string{"vip"}, int16(-3), 7, time.Hour
	edit := store.Edit{Intervention: by(id), IfDigest: seen.Digest(), Patch: []byte(`{"cc":null,"bcc":"eve"}`), Queue: &queue, Tags: &tags, Priority: &priority, MaxAttempts: &attempts, Delay: &delay}
	edit.Request = "request-8"
	job, err := s.operator.Edit(s.ctx, edit)
	s.must(err)
	if string(job.Args) != `{"to":"ann","bcc":"eve"}` && string(job.Args) != `{"bcc":"eve","to":"ann"}` || job.Queue != "bulk" || job.Priority != -3 || len(job.Tags) != 1 || job.MaxAttempts != 7 || !job.DueAt.After(job.AsOf) {
		s.Errorf("the job was edited to %+v", job)
	}
	if job.Digest() == seen.Digest() || job.Digest() != s.expectState(id, holdfast.Queued).Digest() {
		s.Error("the digest does not tell whether the job was edited")
	}
	_, err = s.operator.Edit(s.ctx, edit)
	s.expect(err, holdfast.ErrConflict)
	none, zero := []string{}, time.Duration(0)
	job, err = s.operator.Edit(s.ctx, store.Edit{Intervention: by(id), Tags: &none, Delay: &zero})
	s.must(err)
	if len(job.Tags) != 0 || job.DueAt.After(job.AsOf) {
		s.Errorf("without tags and delay the job is %+v", job)
	}
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: by(id)})
	s.expect(err, holdfast.ErrInvalid)
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: store.Intervention{Job: id}, Queue: &queue})
	s.expect(err, holdfast.ErrInvalid)
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: by(holdfast.NewID()), Queue: &queue})
	s.expect(err, holdfast.ErrNotFound)
	foreign := by(id)
	foreign.Owner = "eve"
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: foreign, Queue: &queue})
	s.expect(err, holdfast.ErrNotFound)
	_, err = s.operator.Cancel(s.ctx, by(id))
	s.must(err)
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: by(id), Queue: &queue})
	s.expect(err, holdfast.ErrConflict)
}

func policiesByHand(s *scene) {
	_, err := s.operator.Policy(s.ctx)
	s.expect(err, holdfast.ErrNotFound)
	_, err = s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: "kinds: ["}, byPerson("ann", ""))
	s.expect(err, holdfast.ErrInvalid)
	const text = "kinds: {mail: {cost: 2.5}}"
	_, err = s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: text}, byPerson("", ""))
	s.expect(err, holdfast.ErrInvalid)
	applied, err := s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: text}, byPerson("ann", "prices"))
	s.must(err)
	now, err := s.operator.Policy(s.ctx)
	s.must(err)
	if applied.Version != 1 || applied.Text != text || now.Version != 1 || now.Text != text || now.KeptAt.IsZero() {
		s.Errorf("the policy was applied as %+v and is shown as %+v", applied, now)
	}
	s.expectEvents("policy", "applied")
}

func keysByHand(s *scene) {
	_, _, err := s.operator.CreateKey(s.ctx, apikey.Request{Name: "shop"}, byPerson("ann", ""))
	s.expect(err, holdfast.ErrInvalid)
	_, _, err = s.operator.CreateKey(s.ctx, apikey.Request{Name: "shop", Scope: apikey.Viewer}, byPerson("", ""))
	s.expect(err, holdfast.ErrInvalid)
	made, text, err := s.operator.CreateKey(s.ctx, apikey.Request{Name: "shop", Scope: apikey.Operator, Owner: "acme", ExpireIn: time.Hour}, byPerson("ann", "new"))
	s.must(err)
	id, secret, err := apikey.Parse(text)
	s.must(err)
	if id != made.ID || made.Hash != "" || made.Owner != "acme" || !made.ExpireAt.Equal(made.CreatedAt.Add(time.Hour)) {
		s.Errorf("the key is %+v", made)
	}
	keys, err := s.operator.Keys(s.ctx)
	s.must(err)
	if len(keys) != 1 || !reflect.DeepEqual(keys[0], made) || strings.Contains(keys[0].ID+keys[0].Hash+keys[0].Name, secret) {
		s.Errorf("the keys are %+v", keys)
	}
	s.expect(s.operator.RevokeKey(s.ctx, "ffffffffffff", byPerson("ann", "")), holdfast.ErrNotFound)
	s.must(s.operator.RevokeKey(s.ctx, id, byPerson("bob", "lost")))
	s.must(s.operator.RevokeKey(s.ctx, id, byPerson("bob", "said twice")))
	if keys, err = s.operator.Keys(s.ctx); err != nil || keys[0].RevokedAt.IsZero() {
		s.Errorf("a revoked key is %+v, %v", keys, err)
	}
	s.expectEvents("key/"+id, "revoked", "made")
}

func namesOfEverySort(s *scene) {
	for _, name := range []string{"https://x:443/a", "a/b//c/", ".", "..", "..:/..", "pause"} {
		id := s.enqueue(func(d *holdfast.Draft) { d.Dependency, d.Queue = name, name })
		s.must(s.operator.ForceBreaker(s.ctx, name, true, byPerson("ann", "")))
		b, err := s.operator.Breaker(s.ctx, name)
		s.must(err)
		if b.Dependency != name {
			s.Errorf("asked for breaker %q, got %q", name, b.Dependency)
		}
		_, err = s.operator.SetSchedule(s.ctx, schedule.Schedule{Name: name, Cron: "0 9 * * *", Draft: holdfast.Draft{Kind: "report"}}, byPerson("ann", ""))
		s.must(err)
		plan, err := s.operator.Schedule(s.ctx, name, 2)
		s.must(err)
		if plan.Name != name || len(plan.Next) != 2 {
			s.Errorf("asked for schedule %q, got %+v", name, plan)
		}
		s.must(s.operator.RunSchedule(s.ctx, name, byPerson("ann", "")))
		s.must(s.operator.RemoveSchedule(s.ctx, name, byPerson("ann", "")))
		jobs, _, err := s.operator.Jobs(s.ctx, store.Filter{Queue: name, Dependency: name})
		s.must(err)
		if len(jobs) != 1 || jobs[0].ID != id {
			s.Errorf("the jobs of queue %q are %+v", name, jobs)
		}
	}
	for n, owner := range []string{"a%2Fb", "a b?c#d&e=f", "..", "äöü/ß", "+"} {
		s.must(s.operator.SetShare(s.ctx, ops.Share{Owner: owner, Weight: 3}, byPerson("ann", "")))
		shares, err := s.operator.Shares(s.ctx)
		s.must(err)
		found := false
		for _, share := range shares {
			found = found || share.Owner == owner && share.Weight == 3
		}
		if !found || len(shares) != n+1 {
			s.Errorf("owner %q has no share among %+v", owner, shares)
		}
	}
	_, err := s.operator.Breaker(s.ctx, "nobody/knows")
	s.expect(err, holdfast.ErrNotFound)
}

func pagesOfAList(s *scene) {
	want := []holdfast.ID{s.failed(), s.failed(), s.failed()}
	f := store.Filter{Limit: 1, DeadLetters: true, Code: "TIMEOUT", NewerThan: time.Hour}
	for n := range want {
		jobs, cursor, err := s.operator.Jobs(s.ctx, f)
		s.must(err)
		if len(jobs) != 1 || jobs[0].ID != want[len(want)-1-n] || (cursor == "") != (n == len(want)-1) {
			s.Fatalf("page %d is %+v with cursor %q", n, jobs, cursor)
		}
		f.Cursor = cursor
	}
	letters, cursor, err := s.operator.DeadLetters(s.ctx, store.Filter{Limit: 2})
	s.must(err)
	if len(letters) != 2 || cursor == "" {
		s.Errorf("a page of dead letters is %+v with cursor %q", letters, cursor)
	}
	_, _, err = s.operator.Jobs(s.ctx, store.Filter{Cursor: "nonsense"})
	s.expect(err, holdfast.ErrInvalid)
}

func everythingAboutAJob(s *scene) {
	id := s.failed()
	history, err := s.operator.History(s.ctx, id)
	s.must(err)
	if history.Job.ID != id || len(history.Attempts) != 1 || history.Attempts[0].Failure.Fingerprint != "f1" || history.Attempts[0].Charge != store.ChargeFailure {
		s.Errorf("the history is %+v", history)
	}
	s.must(s.store.Apply(s.ctx, store.Change{Artifacts: []store.Artifact{{Job: id, Name: "source", Ref: "s3://bucket/a", Size: 1 << 53, ExpireIn: time.Hour}}}))
	artifacts, err := s.operator.Artifacts(s.ctx, id)
	s.must(err)
	if len(artifacts) != 1 || artifacts[0].Size != 1<<53 || artifacts[0].Ref != "s3://bucket/a" || artifacts[0].ExpireAt.IsZero() {
		s.Errorf("the artifacts are %+v", artifacts)
	}
	present := store.WorkerInfo{Worker: "w1", Queues: []string{"default"}, Kinds: []string{"mail"}, Depends: map[string]string{"mail": "gateway"}, Version: "v1", Slots: 4, For: time.Hour}
	s.must(s.store.ReportWorker(s.ctx, present))
	workers, err := s.operator.Workers(s.ctx)
	s.must(err)
	if len(workers) != 1 || workers[0].Depends["mail"] != "gateway" || workers[0].Slots != 4 || workers[0].Until.IsZero() {
		s.Errorf("the workers are %+v", workers)
	}
	unknown := holdfast.NewID()
	_, err = s.operator.History(s.ctx, unknown)
	s.expect(err, holdfast.ErrNotFound)
	_, err = s.operator.Story(s.ctx, unknown)
	s.expect(err, holdfast.ErrNotFound)
	_, err = s.operator.Delivery(s.ctx, unknown)
	s.expect(err, holdfast.ErrNotFound)
}

func restoreOfAnEdit(s *scene) {
	id := s.enqueue(func(d *holdfast.Draft) {
		d.Args = []byte(`{"amount":5,"to":{"name":"ada"},"api_key":"old-word","none":null}`)
	})
	before, err := s.operator.Job(s.ctx, id)
	s.must(err)
	queue := "slow"
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: by(id), Patch: []byte(`{"amount":7,"to":{"name":"bob","cc":"eve"},"api_key":"new-word","none":"https://bob:word@example.com/"}`), Queue: &queue})
	s.must(err)
	lines, err := s.operator.Story(s.ctx, id)
	s.must(err)
	edit := lines[len(lines)-1]
	if !strings.Contains(lines[0].Text, "in queue default") {
		s.Errorf("a job that was moved is shown as %q", lines[0].Text)
	}
	var shown []string
	for _, change := range edit.Changes {
		shown = append(shown, change.String())
	}
	want := []string{"args.amount: 5 → 7", `args.api_key: "***" → "***"`, `args.none: null → "https://***@example.com/"`, `args.to.cc: added "eve"`, `args.to.name: "ada" → "bob"`, `queue: "default" → "slow"`}
	if !slices.Equal(shown, want) {
		s.Errorf("the story shows %q, want %q", shown, want)
	}
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: by(id), Restore: edit.At, IfDigest: before.Digest()})
	s.expect(err, holdfast.ErrConflict)
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: by(id), Restore: edit.At.Add(-time.Hour)})
	s.expect(err, holdfast.ErrInvalid)
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: by(id), Restore: edit.At, Queue: &queue})
	s.expect(err, holdfast.ErrInvalid)
	foreign := by(id)
	foreign.Owner = "somebody else"
	_, err = s.operator.Edit(s.ctx, store.Edit{Intervention: foreign, Restore: edit.At})
	s.expect(err, holdfast.ErrNotFound)
	job, err := s.operator.Edit(s.ctx, store.Edit{Intervention: by(id), Restore: edit.At})
	s.must(err)
	if string(job.Args) != string(before.Args) || job.Queue != before.Queue {
		s.Errorf("restored to %s in %s, want %s in %s", job.Args, job.Queue, before.Args, before.Queue)
	}
	lines, err = s.operator.Story(s.ctx, id)
	s.must(err)
	if last := lines[len(lines)-1]; last.Name != "edit" || !strings.Contains(last.Reason, "restored what was there before") || len(last.Changes) != 6 {
		s.Errorf("the last line: %+v", last)
	}
}
