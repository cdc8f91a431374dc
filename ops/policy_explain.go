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
	"github.com/holdfastdev/holdfast/internal/check"
)

// A PolicyQuestion asks which settings apply to failures. Empty fields are left open. With a Job, empty fields are taken
// from the job and its last failure.
type PolicyQuestion struct {
	Kind       string
	Code       string
	Owner      string
	Dependency string // when empty: the dependency that live workers of the kind declare
	Job        holdfast.ID
}

// ExplainPolicy returns the settings that apply to failures of a kind with a code, for an owner, each with its source: the
// job, the policy in force, the published policies of a worker in Go, or the built-in default. An undefined code is
// ErrNotFound.
func (s *Service) ExplainPolicy(ctx context.Context, ask PolicyQuestion) (policy.Explanation, error) {
	q := policy.Question{}
	if ask.Job != (holdfast.ID{}) {
		job, err := s.store.Job(ctx, ask.Job)
		if err != nil {
			return policy.Explanation{}, err
		}
		ask, q.Job = ask.fillFrom(job), jobSettings(job)
	}
	for what, name := range map[string]string{"kind": ask.Kind, "owner": ask.Owner, "dependency": ask.Dependency} {
		if len(name) > 4*check.MaxName {
			return policy.Explanation{}, invalid("a %s of %d bytes: names are shorter", what, len(name))
		}
	}
	if ask.Kind == "" {
		return policy.Explanation{}, invalid("no kind: name the kind of job")
	}
	codes, err := s.catalog(ctx)
	if err != nil {
		return policy.Explanation{}, err
	}
	if q.Code, q.CodeSource, err = findCode(codes.Entries(), ask.Code); err != nil {
		return policy.Explanation{}, err
	}
	q.Kind, q.Owner, q.Dependency = ask.Kind, ask.Owner, ask.Dependency
	notes, err := s.addPublished(ctx, &q)
	if err != nil {
		return policy.Explanation{}, err
	}
	set, err := s.policies(ctx)
	if err != nil {
		return policy.Explanation{}, err
	}
	r, err := s.readRecord(ctx, namespacePolicy, policyCurrent)
	if err != nil {
		return policy.Explanation{}, err
	}
	e := set.Explain(q)
	if _, is := decodeApplied(r); is {
		e.Version = r.Version
	} else {
		notes = append(notes, "no policy is applied to the store: the policy file of a worker is not known here")
	}
	e.Notes = notes
	return e, nil
}

// fillFrom fills empty fields from a job.
func (q PolicyQuestion) fillFrom(job holdfast.Job) PolicyQuestion {
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

// jobSettings returns the settings of the job itself.
func jobSettings(job holdfast.Job) map[string]string {
	settings := map[string]string{}
	if job.MaxAttempts > 0 {
		settings["max_attempts"] = strconv.Itoa(job.MaxAttempts)
	}
	if job.RetryWithin > 0 {
		settings["retry_within"] = job.RetryWithin.String()
	}
	return settings
}

// addPublished adds to the question what the programs that work on the kind publish: their policies in Go, and the dependency.
func (s *Service) addPublished(ctx context.Context, q *policy.Question) (notes []string, err error) {
	records, err := s.store.Records(ctx, catalog.Namespace)
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
		notes = append(notes, fmt.Sprintf("live workers of this kind have %d different sets of policies in Go: this is the set of %d of them%s", len(found), found[0].Workers, versionsOf(found[0])))
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
