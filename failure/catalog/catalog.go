// Package catalog knows the failure codes of all programs that share a store. Each engine publishes the codes of its taxonomy
// that are not built in as a record of the store; the command line, the server, the console, the simulator and engines that
// judge for workers in other languages read them there.
//
// A definition comes from one of four sources. When several define the same code, the later one of this list applies:
//
//  1. built in;
//  2. published by a worker: a live worker's definition before that of one that is gone, then the newer publication;
//  3. the taxonomy that this process was given in Go;
//  4. the codes of the policy in force.
//
// The definitions that do not apply are listed too. What workers published is never dropped while it is the only definition of
// a code, because the history still shows that code.
package catalog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// Sources of definitions.
const (
	BuiltIn = "built in"
	Worker  = "worker"
	Program = "program" // the taxonomy of the process that answers
	Policy  = "policy"
)

// A Definition is what one source says about a code.
type Definition struct {
	Code        failure.Code `json:"code"`
	Source      string       `json:"source"`
	Versions    []string     `json:"versions,omitempty"`    // of the applications that published it
	Live        bool         `json:"live"`                  // false: published, and no live worker has it any more
	PublishedAt time.Time    `json:"published_at,omitzero"` // by a worker, first
	SeenAt      time.Time    `json:"seen_at,omitzero"`      // a worker with it ran then; exact to a day
}

// An Entry is a code: the definition that applies, and those that do not.
type Entry struct {
	Definition
	Others []Definition `json:"others,omitempty"`
}

// A Catalog is all codes that are known. Make one with Read.
type Catalog struct {
	defined map[string][]Definition // the one that applies last
	order   []string
}

// Read puts together the built-in codes and what workers published: records are those of Room, workers are the live ones. What
// cannot be read is left out.
func Read(records []holdfast.Record, workers []holdfast.Presence) *Catalog {
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

// Add adds definitions that go before all that are there.
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

// Entries lists every code: the built-in ones in their order, then the others by name.
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

// Taxonomy knows the definitions that apply.
func (c *Catalog) Taxonomy() *failure.Taxonomy {
	return c.taxonomy(nil, func(string) bool { return true })
}

// Beside knows what a program's own taxonomy knows, and of what others published the codes that it does not know. So what
// another program publishes never changes the meaning of a code that this one has.
func (c *Catalog) Beside(own *failure.Taxonomy) *failure.Taxonomy {
	return c.taxonomy(own, func(name string) bool {
		_, known := own.Code(name)
		return !known
	})
}

// taxonomy adds the codes that are wanted to those of a program.
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
	if err != nil { // each was checked on its way in
		return own
	}
	return t
}

func distinct(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}

// WithoutPolicy lists the same codes as if no policy defined any: so a policy that replaces the one in force is read.
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

// TaxonomyOf knows the definitions that apply of a list, as Entries gave it here or a server sent it.
func TaxonomyOf(entries []Entry) *failure.Taxonomy {
	var own []failure.Code
	for _, e := range entries {
		if e.Source != BuiltIn && e.Code.Check() == nil {
			own = append(own, e.Code)
		}
	}
	t, err := failure.NewTaxonomy(own...)
	if err != nil { // a code is listed twice: no server does so
		return nil
	}
	return t
}
