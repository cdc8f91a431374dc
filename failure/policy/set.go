package policy

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// A Set is the content of a policy file. It does not change and is safe for concurrent use. A nil Set and the zero value set
// nothing.
type Set struct {
	text     string
	taxonomy *failure.Taxonomy
	base     entry        // defaults, and codes
	defined  []definition // codes that the file defines
	sections map[string]*section
	merged   sync.Map // Key to failure.Policy: results of For
}

// sectionNames are the names at the top level of a file.
var sectionNames = []string{"defaults", "codes", "kinds", "owners", "dependencies", "queues"}

// An entry holds the settings of one name, or of all names with a prefix.
type entry struct {
	terms
	codes   map[string]terms
	limit   *limit
	windows []failure.Window
	cost    float64
	owner   ownerSettings
	depends dependencySettings
}

type ownerSettings struct {
	share   float64
	enqueue *limit
	budget  OwnerBudget
}

type dependencySettings struct {
	breaker       breaker.Config
	failFast, off *bool
	budget        failure.Budget
	budgetOff     *bool
	probe         Probe
}

// An OwnerBudget limits the retries of an owner. Zero fields set no limit.
type OwnerBudget struct {
	RetriesPerDay   int
	RetriesPerMonth int
	CostPerDay      float64        // of all its attempts, by the cost of their kinds
	Zone            *time.Location // where days and months begin; UTC when nil
}

// A Probe checks a dependency with a GET request. A status below 400 means healthy.
type Probe struct {
	URL   string
	Every time.Duration // 5 s when zero
}

// A section holds the entries of one kind of name.
type section struct {
	named    map[string]*entry
	patterns map[string]*entry // entries whose names end in *, by the prefix
	lengths  []int             // of the prefixes, the longest first

	deliveries string // prefix of names of deliveries; empty: there are none in this section
}

func (s *Set) section(name string) *section {
	if s == nil || s.sections[name] == nil {
		return &emptySection
	}
	return s.sections[name]
}

var emptySection section

func newSection(kind string) *section {
	return &section{deliveries: deliveries[kind], named: map[string]*entry{}, patterns: map[string]*entry{}}
}

func (s *section) put(name string, e *entry) {
	s.named[name] = e
	prefix, isPattern := strings.CutSuffix(name, "*")
	if !isPattern {
		return
	}
	s.patterns[prefix] = e
	at, known := slices.BinarySearchFunc(s.lengths, len(prefix), func(a, b int) int { return b - a })
	if !known {
		s.lengths = slices.Insert(s.lengths, at, len(prefix))
	}
}

// prefixes yields the prefixes of a name for which there is a pattern, the longest first.
func (s *section) prefixes(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, n := range s.lengths {
			if n > len(name) {
				continue
			}
			if _, ok := s.patterns[name[:n]]; ok && !yield(name[:n]) {
				return
			}
		}
	}
}

// nearest returns the entry with the highest precedence for a name, or "". It determines which other entries apply too.
func (s *section) nearest(name string) string {
	for _, found := range slices.Backward(s.chain(name)) {
		return found.name
	}
	return ""
}

// A matchedEntry is an entry that applies, with its name or pattern in the file.
type matchedEntry struct {
	name string
	*entry
}

// chain returns the entries that apply to a name, the one with the highest precedence last. To names of deliveries only
// entries with their prefix apply.
func (s *section) chain(name string) (chain []matchedEntry) {
	if name == "" || len(s.named) == 0 {
		return nil
	}
	own := s.named[name]
	if own != nil {
		chain = append(chain, matchedEntry{name, own})
	}
	for prefix := range s.prefixes(name) {
		e := s.patterns[prefix]
		if e == own || s.deliveries != "" && strings.HasPrefix(name, s.deliveries) && !strings.HasPrefix(prefix, s.deliveries) {
			continue
		}
		chain = append(chain, matchedEntry{prefix + "*", e})
	}
	slices.Reverse(chain)
	return chain
}

func (s *section) names() []string { return slices.Sorted(maps.Keys(s.named)) }

// Text returns the file as it was given to Parse.
func (s *Set) Text() string {
	if s == nil {
		return ""
	}
	return s.text
}

// Kinds returns the kinds that have an entry, patterns included, sorted.
func (s *Set) Kinds() []string { return s.section("kinds").names() }

// Owners returns the owners that have an entry, patterns included, sorted.
func (s *Set) Owners() []string { return s.section("owners").names() }

// Queues returns the queues that have an entry, patterns included, sorted.
func (s *Set) Queues() []string { return s.section("queues").names() }

// Dependencies returns the dependencies that have an entry, patterns included, sorted.
func (s *Set) Dependencies() []string { return s.section("dependencies").names() }

// Breaker returns the breaker settings of a dependency. Fields that the file does not set are zero.
func (s *Set) Breaker(dependency string) breaker.Config {
	return s.BreakerOver(breaker.Config{}, dependency)
}

// BreakerOver is Breaker over settings in Go: settings of the file take precedence.
func (s *Set) BreakerOver(own breaker.Config, dependency string) breaker.Config {
	for _, e := range s.section("dependencies").chain(dependency) {
		own = e.depends.over(own)
	}
	return own
}

// Budget returns a dependency's retry budget, and whether there is one: it is on unless the file turns it off.
func (s *Set) Budget(dependency string) (b failure.Budget, on bool) {
	return s.BudgetOver(failure.Budget{}, dependency)
}

// BudgetOver is Budget over settings in Go: settings of the file take precedence.
func (s *Set) BudgetOver(own failure.Budget, dependency string) (b failure.Budget, on bool) {
	on = true
	for _, e := range s.section("dependencies").chain(dependency) {
		own = e.depends.overBudget(own)
		if e.depends.budgetOff != nil {
			on = !*e.depends.budgetOff
		}
	}
	return own, on
}

// Probe returns the health probe of a dependency, if the file sets one.
func (s *Set) Probe(dependency string) (p Probe, ok bool) {
	for _, e := range s.section("dependencies").chain(dependency) {
		if e.depends.probe.URL != "" {
			p = e.depends.probe
		}
	}
	return p, p.URL != ""
}

// Share returns an owner's weight when owners share workers; 1 if the file does not set it.
func (s *Set) Share(owner string) float64 {
	if e := s.section("owners").named[owner]; e != nil && e.owner.share > 0 {
		return e.owner.share
	}
	return 1
}

// Shares returns the owners whose weight the file sets.
func (s *Set) Shares() map[string]float64 {
	shares := map[string]float64{}
	for name, e := range s.section("owners").named {
		if e.owner.share > 0 {
			shares[name] = e.owner.share
		}
	}
	return shares
}

// EnqueueRate returns how fast an owner may enqueue, if the file sets it. A pattern gives each of its owners a rate of its own.
func (s *Set) EnqueueRate(owner string) (rate store.Rate, ok bool) {
	for _, e := range s.section("owners").chain(owner) {
		if e.owner.enqueue != nil {
			rate, ok = *e.owner.enqueue.rate(), true
		}
	}
	return rate, ok
}

// OwnerBudget returns the retry budget of an owner, if the file sets one. A pattern gives each of its owners a budget of its own.
func (s *Set) OwnerBudget(owner string) (b OwnerBudget, ok bool) {
	for _, e := range s.section("owners").chain(owner) {
		if e.owner.budget != (OwnerBudget{}) {
			b, ok = e.owner.budget, true
		}
	}
	return b, ok
}

// Cost returns what an attempt of a kind costs, in the unit of the file; 0 if the file does not set it.
func (s *Set) Cost(kind string) (cost float64) {
	for _, e := range s.section("kinds").chain(kind) {
		if e.cost > 0 {
			cost = e.cost
		}
	}
	return cost
}
