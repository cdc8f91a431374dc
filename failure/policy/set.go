package policy

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// A Set is what a file says. It never changes and is safe for concurrent use. A nil Set, and its zero value, say nothing.
type Set struct {
	text     string
	taxonomy *failure.Taxonomy
	base     entry        // defaults, and codes
	defined  []definition // codes that the file defines
	sections map[string]*section
	merged   sync.Map // Key to failure.Policy: what For has answered before
}

// sectionNames are the words at the top of a file.
var sectionNames = []string{"defaults", "codes", "kinds", "owners", "dependencies", "queues"}

// An entry is what a file says about one name, or about all names that begin alike.
type entry struct {
	terms
	codes   map[string]terms
	limit   *limit
	windows []failure.Window
	cost    float64
	owner   ownerSays
	depends dependencySays
}

type ownerSays struct {
	share   float64
	enqueue *limit
	budget  OwnerBudget
}

type dependencySays struct {
	breaker       breaker.Config
	failFast, off *bool
	budget        failure.Budget
	budgetOff     *bool
	probe         Probe
}

// An OwnerBudget is what an owner's retries may use up. Zero fields are no limit.
type OwnerBudget struct {
	RetriesPerDay   int
	RetriesPerMonth int
	CostPerDay      float64        // of all its attempts, by the cost of their kinds
	Zone            *time.Location // where days and months begin; UTC when nil
}

// A Probe asks a dependency how it is, by a GET that must be answered with a status below 400.
type Probe struct {
	URL   string
	Every time.Duration // 5 s when zero
}

// A section holds the entries of one sort of name.
type section struct {
	named    map[string]*entry
	patterns map[string]*entry // those whose names end in *, without it
	lengths  []int             // of the patterns' beginnings, the longest first

	deliveries string // how names of deliveries begin; empty: they have none here
}

func (s *Set) section(name string) *section {
	if s == nil || s.sections[name] == nil {
		return &nothing
	}
	return s.sections[name]
}

var nothing section

func newSection(kind string) *section {
	return &section{deliveries: deliveries[kind], named: map[string]*entry{}, patterns: map[string]*entry{}}
}

func (s *section) put(name string, e *entry) {
	s.named[name] = e
	begin, isPattern := strings.CutSuffix(name, "*")
	if !isPattern {
		return
	}
	s.patterns[begin] = e
	at, known := slices.BinarySearchFunc(s.lengths, len(begin), func(a, b int) int { return b - a })
	if !known {
		s.lengths = slices.Insert(s.lengths, at, len(begin))
	}
}

// begins lists the beginnings of a name for which there is a pattern, the longest first.
func (s *section) begins(name string) iter.Seq[string] {
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

// nearest is the name of the entry with the highest precedence for a name, or nothing. It settles which others follow.
func (s *section) nearest(name string) string {
	for _, found := range slices.Backward(s.chain(name)) {
		return found.name
	}
	return ""
}

// A found is an entry that applies, and the name or pattern it has in the file.
type found struct {
	name string
	*entry
}

// chain lists the entries that apply to a name, the one with the highest precedence last. To names of deliveries only entries apply that begin as these do.
func (s *section) chain(name string) (chain []found) {
	if name == "" || len(s.named) == 0 {
		return nil
	}
	own := s.named[name]
	if own != nil {
		chain = append(chain, found{name, own})
	}
	for begin := range s.begins(name) {
		e := s.patterns[begin]
		if e == own || s.deliveries != "" && strings.HasPrefix(name, s.deliveries) && !strings.HasPrefix(begin, s.deliveries) {
			continue
		}
		chain = append(chain, found{begin + "*", e})
	}
	slices.Reverse(chain)
	return chain
}

func (s *section) names() []string { return slices.Sorted(maps.Keys(s.named)) }

// Text is the file as it was given to Parse.
func (s *Set) Text() string {
	if s == nil {
		return ""
	}
	return s.text
}

// Kinds lists the kinds that have an entry, patterns included, sorted.
func (s *Set) Kinds() []string { return s.section("kinds").names() }

// Owners lists the owners that have an entry, patterns included, sorted.
func (s *Set) Owners() []string { return s.section("owners").names() }

// Queues lists the queues that have an entry, patterns included, sorted.
func (s *Set) Queues() []string { return s.section("queues").names() }

// Dependencies lists the dependencies that have an entry, patterns included, sorted.
func (s *Set) Dependencies() []string { return s.section("dependencies").names() }

// Breaker is how a dependency's circuit is judged. Fields nobody says anything about are zero.
func (s *Set) Breaker(dependency string) breaker.Config {
	return s.BreakerOver(breaker.Config{}, dependency)
}

// BreakerOver is Breaker over one that was written in code: what the file says wins.
func (s *Set) BreakerOver(own breaker.Config, dependency string) breaker.Config {
	for _, e := range s.section("dependencies").chain(dependency) {
		own = e.depends.over(own)
	}
	return own
}

// Budget is a dependency's retry budget, and whether there is one: it is on unless the file says otherwise.
func (s *Set) Budget(dependency string) (b failure.Budget, on bool) {
	return s.BudgetOver(failure.Budget{}, dependency)
}

// BudgetOver is Budget over one that was written in code: what the file says wins.
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

// Probe is how to ask a dependency how it is, if the file says so.
func (s *Set) Probe(dependency string) (p Probe, ok bool) {
	for _, e := range s.section("dependencies").chain(dependency) {
		if e.depends.probe.URL != "" {
			p = e.depends.probe
		}
	}
	return p, p.URL != ""
}

// Share is an owner's weight when owners share workers; 1 where nothing is said.
func (s *Set) Share(owner string) float64 {
	if e := s.section("owners").named[owner]; e != nil && e.owner.share > 0 {
		return e.owner.share
	}
	return 1
}

// Shares lists the owners whose weight the file gives.
func (s *Set) Shares() map[string]float64 {
	shares := map[string]float64{}
	for name, e := range s.section("owners").named {
		if e.owner.share > 0 {
			shares[name] = e.owner.share
		}
	}
	return shares
}

// EnqueueRate is how fast an owner may enqueue, if the file says so. A pattern gives each of its owners that much.
func (s *Set) EnqueueRate(owner string) (rate holdfast.Rate, ok bool) {
	for _, e := range s.section("owners").chain(owner) {
		if e.owner.enqueue != nil {
			rate, ok = *e.owner.enqueue.rate(), true
		}
	}
	return rate, ok
}

// OwnerBudget is what an owner's retries may use up, if the file says so. A pattern gives each of its owners that much.
func (s *Set) OwnerBudget(owner string) (b OwnerBudget, ok bool) {
	for _, e := range s.section("owners").chain(owner) {
		if e.owner.budget != (OwnerBudget{}) {
			b, ok = e.owner.budget, true
		}
	}
	return b, ok
}

// Cost is what an attempt of a kind costs, in whatever unit the file counts; 0 where nothing is said.
func (s *Set) Cost(kind string) (cost float64) {
	for _, e := range s.section("kinds").chain(kind) {
		if e.cost > 0 {
			cost = e.cost
		}
	}
	return cost
}
