// Package catalog collects the failure codes of all programs that share a store. Each engine publishes the codes of its taxonomy
// that are not built in as a record of the store. The command, the server, the console, the simulator, and engines that
// decide for workers in other languages read them from there.
//
// A definition comes from one of four sources. If several define the same code, the last of this list applies:
//
//  1. built in;
//  2. published by a worker: a live worker's definition takes precedence over that of a stopped one, then the newer publication;
//  3. the taxonomy of this process, in Go;
//  4. the codes of the applied policy.
//
// The catalog lists the definitions that do not apply too. A published definition is never dropped while it is the only one of
// a code, because the history still shows that code.
//
//	c := catalog.Read(records, workers) // records of catalog.Namespace, live workers
//	c.Add(catalog.Policy, set.Codes(nil))
//	taxonomy := c.Taxonomy()
package catalog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// Sources of definitions.
const (
	BuiltIn = "built in"
	Worker  = "worker"
	Program = "program" // the taxonomy of this process
	Policy  = "policy"
)

// A Definition is the description of a code by one source.
type Definition struct {
	Code        failure.Code `json:"code"`
	Source      string       `json:"source"`
	Versions    []string     `json:"versions,omitempty"`    // of the applications that published it
	Live        bool         `json:"live"`                  // false: published, and no live worker uses it
	PublishedAt time.Time    `json:"published_at,omitzero"` // when a worker first published it
	SeenAt      time.Time    `json:"seen_at,omitzero"`      // when a worker with it last ran; exact to a day
}

// An Entry is a code: the definition that applies, and the others.
type Entry struct {
	Definition
	Others []Definition `json:"others,omitempty"`
}

// A Catalog is the set of all known codes. Create one with Read. It is not safe for concurrent use while Add is called.
type Catalog struct {
	defined map[string][]Definition // by name; the last one applies
	order   []string
}

// Read returns the built-in codes and those that workers published. records are those of Namespace, workers the live ones.
// Records that cannot be decoded are skipped.
func Read(records []store.Record, workers []store.WorkerInfo) *Catalog {
	c := &Catalog{defined: map[string][]Definition{}}
	var builtin *failure.Taxonomy
	c.Add(BuiltIn, builtin.Codes())
	for _, p := range published(records, workers) {
		for _, code := range p.Codes {
			if code.Check() != nil {
				continue
			}
			c.add(Definition{Code: code, Source: Worker, Versions: p.versions, Live: p.live, PublishedAt: p.Since, SeenAt: p.seen})
		}
	}
	return c
}

// Add adds definitions that take precedence over all existing ones.
func (c *Catalog) Add(source string, codes []failure.Code) {
	for _, code := range codes {
		c.add(Definition{Code: code, Source: source, Live: true})
	}
}

func (c *Catalog) add(d Definition) {
	known := c.defined[d.Code.Name]
	if known == nil {
		c.order = append(c.order, d.Code.Name)
	}
	if same := slices.IndexFunc(known, func(o Definition) bool { return o.Code == d.Code && o.Source == d.Source }); same >= 0 {
		d.Versions = distinct(known[same].Versions, d.Versions)
		if d.PublishedAt.IsZero() || known[same].PublishedAt.Before(d.PublishedAt) {
			d.PublishedAt = known[same].PublishedAt
		}
		known = slices.Delete(known, same, same+1)
	}
	c.defined[d.Code.Name] = append(known, d)
}

// Entries returns every code: the built-in ones in their order, then the others by name.
func (c *Catalog) Entries() []Entry {
	var builtin *failure.Taxonomy
	first := len(builtin.Codes())
	names := slices.Concat(c.order[:first], slices.Sorted(slices.Values(c.order[first:])))
	entries := make([]Entry, len(names))
	for i, name := range names {
		all := slices.Clone(c.defined[name])
		slices.Reverse(all)
		entries[i] = Entry{all[0], all[1:]}
	}
	return entries
}

// Taxonomy returns the definitions that apply.
func (c *Catalog) Taxonomy() *failure.Taxonomy {
	return c.taxonomy(nil, func(string) bool { return true })
}

// With returns a program's own taxonomy, extended by the published codes that it lacks. So a publication of another
// program never changes the meaning of a code that this one defines.
func (c *Catalog) With(own *failure.Taxonomy) *failure.Taxonomy {
	return c.taxonomy(own, func(name string) bool {
		_, known := own.Code(name)
		return !known
	})
}

// taxonomy returns own extended by the codes that wanted accepts.
func (c *Catalog) taxonomy(own *failure.Taxonomy, wanted func(name string) bool) *failure.Taxonomy {
	codes := own.Own()
	for _, name := range slices.Sorted(maps.Keys(c.defined)) {
		all := c.defined[name]
		last := all[len(all)-1]
		if last.Source != BuiltIn && wanted(name) {
			codes = append(codes, last.Code)
		}
	}
	if len(codes) == 0 {
		return own
	}
	t, err := failure.NewTaxonomy(codes...)
	if err != nil { // cannot happen: each code was checked by Read or Add's caller
		return own
	}
	return t
}

func distinct(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}

// WithoutPolicy returns the entries as if no policy defined codes. Use it to read a policy that will replace the applied one.
func WithoutPolicy(entries []Entry) (others []Entry) {
	for _, e := range entries {
		if e.Source == Policy {
			if len(e.Others) == 0 {
				continue
			}
			e = Entry{e.Others[0], e.Others[1:]}
		}
		others = append(others, e)
	}
	return others
}

// TaxonomyOf returns the taxonomy of a list of entries, as Entries or a server returned it. It is nil if a code is listed twice.
func TaxonomyOf(entries []Entry) *failure.Taxonomy {
	var own []failure.Code
	for _, e := range entries {
		if e.Source != BuiltIn && e.Code.Check() == nil {
			own = append(own, e.Code)
		}
	}
	t, err := failure.NewTaxonomy(own...)
	if err != nil { // a code is listed twice, which no server does
		return nil
	}
	return t
}
