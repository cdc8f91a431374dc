package ops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
)

// A PolicyQuestion asks which settings apply to failures. What is empty is left open; a job gives its kind, owner, dependency and the code of its last failure
// where these are empty.
type PolicyQuestion struct {
	Kind       string
	Code       string
	Owner      string
	Dependency string // what the live workers of the kind call, when empty
	Job        holdfast.ID
}

// ExplainPolicy says which settings apply to failures of a kind with a code, for an owner, and which source gave each: the job, the policy in force, what a worker
// published of its policies in Go, or the built-in default. ErrNotFound when nothing defines the code.
func (s *Service) ExplainPolicy(ctx context.Context, ask PolicyQuestion) (policy.Explanation, error) {
	q := policy.Question{}
	if ask.Job != (holdfast.ID{}) {
		job, err := s.store.Job(ctx, ask.Job)
		if err != nil {
			return policy.Explanation{}, err
		}
		ask, q.Job = ask.about(job), saysItself(job)
	}
	for what, name := range map[string]string{"kind": ask.Kind, "owner": ask.Owner, "dependency": ask.Dependency} {
		if len(name) > 4*holdfast.MaxName {
			return policy.Explanation{}, invalid("a %s of %d bytes: no name is that long", what, len(name))
		}
	}
	if ask.Kind == "" {
		return policy.Explanation{}, invalid("no kind is named: say which kind of job is asked about")
	}
	codes, err := s.catalog(ctx)
	if err != nil {
		return policy.Explanation{}, err
	}
	if q.Code, q.CodeSource, err = defined(codes.Entries(), ask.Code); err != nil {
		return policy.Explanation{}, err
	}
	q.Kind, q.Owner, q.Dependency = ask.Kind, ask.Owner, ask.Dependency
	notes, err := s.askWorkers(ctx, &q)
	if err != nil {
		return policy.Explanation{}, err
	}
	set, err := s.policies(ctx)
	if err != nil {
		return policy.Explanation{}, err
	}
	r, err := s.record(ctx, policyRoom, policyCurrent)
	if err != nil {
		return policy.Explanation{}, err
	}
	e := set.Explain(q)
	if _, is := appliedIn(r); is {
		e.Version = r.Version
	} else {
		notes = append(notes, "no policy is applied to the store: a policy file that a worker was given at its start is not known here")
	}
	e.Notes = notes
	return e, nil
}

// about fills in what is open from a job.
func (q PolicyQuestion) about(job holdfast.Job) PolicyQuestion {
	for _, one := range []struct {
		to   *string
		from string
	}{{&q.Kind, job.Kind}, {&q.Owner, job.Owner}, {&q.Dependency, job.Dependency}} {
		if *one.to == "" {
			*one.to = one.from
		}
	}
	if q.Code == "" && job.LastFailure != nil {
		q.Code = job.LastFailure.Code
	}
	return q
}

// saysItself are the settings that a job brings with it.
func saysItself(job holdfast.Job) map[string]string {
	said := map[string]string{}
	if job.MaxAttempts > 0 {
		said["max_attempts"] = strconv.Itoa(job.MaxAttempts)
	}
	if job.RetryWithin > 0 {
		said["retry_within"] = job.RetryWithin.String()
	}
	return said
}

// askWorkers finds what the programs that work on the kind publish: their policies in Go, and what they call.
func (s *Service) askWorkers(ctx context.Context, q *policy.Question) (notes []string, err error) {
	records, err := s.store.Records(ctx, catalog.Room)
	if err != nil {
		return nil, err
	}
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		if q.Dependency == "" && slices.Contains(w.Kinds, q.Kind) {
			q.Dependency = w.Depends[q.Kind]
		}
	}
	found := catalog.Applications(records, workers, q.Kind)
	switch {
	case len(found) == 0:
		return []string{"no live worker works on this kind, and none published a policy for it: policies in Go are not known"}, nil
	case found[0].Workers == 0:
		notes = append(notes, "no live worker works on this kind: policies in Go are those that a worker published last")
	case len(found) > 1:
		notes = append(notes, fmt.Sprintf("live workers of this kind have %d different sets of policies in Go: shown is the set of %d of them%s", len(found), found[0].Workers, versionsOf(found[0])))
	}
	q.InGo = found[0].InGo
	return notes, nil
}

func versionsOf(a catalog.Application) string {
	if len(a.Versions) == 0 {
		return ""
	}
	return " (version " + strings.Join(a.Versions, ", ") + ")"
}
