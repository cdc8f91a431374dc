package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
)

// Codes returns every known failure code with the source of its definition: built in, published by a worker, given to
// this process in Go, or defined by the policy in force.
func (s *Service) Codes(ctx context.Context) ([]catalog.Entry, error) {
	c, err := s.catalog(ctx)
	if err != nil {
		return nil, err
	}
	return c.Entries(), nil
}

// catalog reads all codes: published by workers, given to this process, and defined by the policy in force.
func (s *Service) catalog(ctx context.Context) (*catalog.Catalog, error) {
	c, err := s.catalogWithoutPolicy(ctx)
	if err != nil {
		return nil, err
	}
	known := c.Taxonomy()
	set, err := s.currentPolicy(ctx, known)
	if err != nil {
		return nil, err
	}
	c.Add(catalog.Policy, set.Codes(known))
	return c, nil
}

// taxonomyWithoutPolicy returns all codes except those that the policy in force defines, because a policy that replaces it
// does not inherit them.
func (s *Service) taxonomyWithoutPolicy(ctx context.Context) (*failure.Taxonomy, error) {
	c, err := s.catalogWithoutPolicy(ctx)
	if err != nil {
		return nil, err
	}
	return c.Taxonomy(), nil
}

func (s *Service) catalogWithoutPolicy(ctx context.Context) (*catalog.Catalog, error) {
	records, err := s.store.Records(ctx, catalog.Namespace)
	if err != nil {
		return nil, err
	}
	var workers []store.WorkerInfo
	if len(records) > 0 {
		if workers, err = s.store.Workers(ctx); err != nil {
			return nil, err
		}
	}
	c := catalog.Read(records, workers)
	c.Add(catalog.Program, s.cfg.Taxonomy.Own())
	return c, nil
}

// taxonomy returns the codes that apply.
func (s *Service) taxonomy(ctx context.Context) (*failure.Taxonomy, error) {
	c, err := s.catalog(ctx)
	if err != nil {
		return nil, err
	}
	return c.Taxonomy(), nil
}

// codeOf returns the code of a failure. A code without a definition has the name and the texts of the failure.
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

// findCode returns a code with the source of its definition. An empty name means any code.
func findCode(entries []catalog.Entry, name string) (code failure.Code, source string, err error) {
	if name == "" {
		return code, "", nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		if names[i] = e.Code.Name; e.Code.Name == name {
			return e.Code, strings.TrimSpace(e.Source + " " + strings.Join(e.Versions, ", ")), nil
		}
	}
	message := fmt.Sprintf("failure code %.80q is not defined", name)
	if meant := policy.Nearest(name, names); meant != "" {
		message += "; did you mean " + meant + "?"
	}
	return code, "", &holdfast.Error{Err: holdfast.ErrNotFound, Message: message}
}
