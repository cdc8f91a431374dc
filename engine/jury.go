package engine

import (
	"maps"
	"slices"
	"sync"

	"github.com/holdfastdev/holdfast"
)

const (
	maxRemembered = 20_000 // reports, so that one that comes again is not counted again
	maxMet        = 1000   // kinds of other workers
)

// A jury is what an engine remembers of attempts that were made elsewhere.
type jury struct {
	under sync.WaitGroup // judgements under way

	mu         sync.Mutex
	sits       bool // the engine runs
	met        map[string]bool
	considered memory
	told       memory
}

// A fence names one attempt.
type fence struct {
	job   holdfast.ID
	token int
}

// An entry is what became of an attempt, in short.
type entry struct {
	to     holdfast.State
	charge holdfast.Charge
	failed bool // with a failure record
}

// A memory knows what became of the last few attempts it was shown. The zero value knows none.
type memory struct {
	known map[fence]entry
	order []fence
	next  int
}

// shown reports whether it has seen that one, and has from now on.
func (m *memory) shown(f fence, as entry) bool {
	if _, seen := m.known[f]; seen {
		return true
	}
	if m.known == nil {
		m.known = make(map[fence]entry)
	}
	m.known[f] = as
	if len(m.order) < maxRemembered {
		m.order = append(m.order, f)
		return false
	}
	delete(m.known, m.order[m.next])
	m.order[m.next] = f
	m.next = (m.next + 1) % maxRemembered
	return false
}

// sit lets reports in.
func (j *jury) sit() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sits = true
}

// enter begins a judgement, if the engine runs.
func (j *jury) enter() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sits {
		j.under.Add(1)
	}
	return j.sits
}

// considers reports whether an attempt is to be considered: once.
func (j *jury) considers(o *outcome) bool { return j.news(o, &j.considered) }

// tells reports whether an attempt is to be told of: once.
func (j *jury) tells(o *outcome) bool { return j.news(o, &j.told) }

func (j *jury) news(o *outcome, to *memory) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !to.shown(o.fence(), entry{o.verdict.To, o.verdict.Charge, o.verdict.Failure != nil})
}

func (o *outcome) fence() fence { return fence{o.attempt.lease.ID, o.attempt.lease.Token} }

// recalls reports whether the same was reported and written before. Whoever reports again, because the answer was lost, may know the job
// only as it stands since: then what would be decided now, retry or the end, is no longer what was decided.
func (j *jury) recalls(o *outcome) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	was, known := j.told.known[o.fence()]
	crash := o.verdict.Charge == holdfast.ChargeCrash
	switch {
	case !known || crash != (was.charge == holdfast.ChargeCrash):
		return false
	case was.failed && o.verdict.Failure != nil: // whether it was charged depends on a breaker, which may have moved since
		return true
	}
	return was.charge == o.verdict.Charge && was.to == o.verdict.To
}

// meet remembers a kind that has no handler here: experience with it may be wanted.
func (j *jury) meet(kind string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.met == nil {
		j.met = make(map[string]bool)
	}
	if len(j.met) < maxMet {
		j.met[kind] = true
	}
}

// judged lists the kinds that were met.
func (j *jury) judged() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Keys(j.met))
}

func (j *jury) knows(kind string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.met[kind]
}

// dismiss lets no more reports in and waits for those under way; for the slowest of them the store is given up.
func (e *Engine) dismiss() {
	e.jury.mu.Lock()
	e.jury.sits = false
	e.jury.mu.Unlock()
	if !e.await(&e.jury.under, e.lastWait()) {
		e.letGo()
		e.jury.under.Wait()
	}
}
