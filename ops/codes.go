package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
)

// Codes lists every failure code that is known, with the source of its definition: built in, published by a worker, given to
// this process in Go, or defined by the policy in force.
func (s *Service) Codes(ctx context.Context) ([]catalog.Entry, error) {
	c, err := s.catalog(ctx)
	if err != nil {
		return nil, err
	}
	return c.Entries(), nil
}

// catalog reads which codes there are: what workers published, what this process was given, and what the policy in force defines.
func (s *Service) catalog(ctx context.Context) (*catalog.Catalog, error) {
	c, err := s.withoutPolicy(ctx)
	if err != nil {
		return nil, err
	}
	known := c.Taxonomy()
	set, err := s.inForce(ctx, known)
	if err != nil {
		return nil, err
	}
	c.Add(catalog.Policy, set.Codes(known))
	return c, nil
}

// published knows all codes but those that the policy in force defines: a policy that replaces it does not inherit them.
func (s *Service) published(ctx context.Context) (*failure.Taxonomy, error) {
	c, err := s.withoutPolicy(ctx)
	if err != nil {
		return nil, err
	}
	return c.Taxonomy(), nil
}

func (s *Service) withoutPolicy(ctx context.Context) (*catalog.Catalog, error) {
	records, err := s.store.Records(ctx, catalog.Room)
	if err != nil {
		return nil, err
	}
	var workers []holdfast.Presence
	if len(records) > 0 {
		if workers, err = s.store.Workers(ctx); err != nil {
			return nil, err
		}
	}
	c := catalog.Read(records, workers)
	c.Add(catalog.Program, s.cfg.Taxonomy.Own())
	return c, nil
}

// taxonomy is the catalog as the parser, the simulator and explanations need it.
func (s *Service) taxonomy(ctx context.Context) (*failure.Taxonomy, error) {
	c, err := s.catalog(ctx)
	if err != nil {
		return nil, err
	}
	return c.Taxonomy(), nil
}

// codeOf explains a failure. A code without a definition keeps its name, and what the failure says about it.
func codeOf(known *failure.Taxonomy, f *holdfast.Failure) failure.Code {
	if f == nil {
		return failure.Code{}
	}
	if code, ok := known.Code(f.Code); ok {
		return code
	}
	return failure.Code{
		Name: f.Code, Category: f.Category, Message: f.Message, Benign: f.Benign,
		Remedy: "Define this code: in the taxonomy of the worker that gives it, or under codes in a policy file.",
	}
}

// defined finds a code, and words the source of its definition. No name means any code.
func defined(entries []catalog.Entry, name string) (code failure.Code, source string, err error) {
	if name == "" {
		return code, "", nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		if names[i] = e.Code.Name; e.Code.Name == name {
			return e.Code, strings.TrimSpace(e.Source + " " + strings.Join(e.Versions, ", ")), nil
		}
	}
	message := fmt.Sprintf("nothing defines the failure code %.80q", name)
	if meant := policy.Nearest(name, names); meant != "" {
		message += "; did you mean " + meant + "?"
	}
	return code, "", &holdfast.Error{Kind: holdfast.ErrNotFound, Message: message}
}
