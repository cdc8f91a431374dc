package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A player applies random operations to a model alone, and checks the invariants of groups after each.
type player struct {
	*rand.Rand
	m      *model
	groups []holdfast.ID
	jobs   []holdfast.ID
	serial uint32
	did    []string
}

const sequencesOfGroups, stepsOfGroups = 100_000, 16

func TestGroupsOfTheModelKeepTheirPromisesInRandomSequences(t *testing.T) {
	const hands = 4
	var all sync.WaitGroup
	var reached [hands]map[string]int
	for hand := range hands {
		all.Go(func() {
			reached[hand] = map[string]int{}
			for n := hand; n < sequencesOfGroups && !t.Failed(); n += hands {
				p := &player{Rand: rand.New(rand.NewPCG(uint64(n), 7)), m: newModel(time.Date(2031, 5, 17, 9, 0, 0, 0, time.UTC))}
				if wrong := p.play(reached[hand]); wrong != "" {
					t.Errorf("sequence %d: %s, after %v", n, wrong, p.did)
				}
			}
		})
	}
	all.Wait()
	for _, state := range []string{"open", "processing", "ready", "partial", "failed", "cancelled", "expired", "reopened", "upstream", "skipped"} {
		total := 0
		for _, r := range reached {
			total += r[state]
		}
		if total < 100 {
			t.Errorf("only %d sequences reached %s: the check proves little", total, state)
		}
	}
}

func (p *player) id() (id holdfast.ID) { // cheap, and ordered
	p.serial++
	id[12], id[13], id[14], id[15] = byte(p.serial>>24), byte(p.serial>>16), byte(p.serial>>8), byte(p.serial)
	return id
}

func (p *player) play(reached map[string]int) (wrong string) {
	p.gather()
	p.add()
	steps := []struct {
		name string
		take func()
	}{
		{"gather", p.gather}, {"add", p.add}, {"add", p.add}, {"seal", p.seal}, {"seal", p.seal}, {"work", p.work}, {"work", p.work}, {"work", p.work},
		{"advance groups", p.advanceGroups}, {"advance groups", p.advanceGroups}, {"retry", p.retry}, {"redrive", p.redrive}, {"retry group", p.retryGroup},
		{"cancel", p.cancelJob}, {"cancel group", p.cancelGroup}, {"wait", func() { p.m.now = p.m.now.Add(20 * time.Second) }},
	}
	for range stepsOfGroups {
		s := steps[p.IntN(len(steps))]
		p.did = append(p.did, s.name)
		s.take()
		if wrong = p.invariant(s.name == "advance groups"); wrong != "" {
			return wrong
		}
	}
	for _, g := range p.m.groups {
		reached[string(g.State)]++
		if g.Generation > 1 {
			reached["reopened"]++
		}
	}
	for _, r := range p.m.jobs {
		if !r.Upstream.IsZero() {
			reached["upstream"]++
		}
		if r.Skipped {
			reached["skipped"]++
		}
	}
	return ""
}

// of picks one element, or the zero value of none.
func of(p *player, from []holdfast.ID) holdfast.ID {
	if len(from) == 0 {
		return holdfast.ID{}
	}
	return from[p.IntN(len(from))]
}

func (p *player) gather() {
	g := holdfast.Group{ID: p.id(), Quorum: []int{0, 0, 0, 1, 2}[p.IntN(5)]}
	if p.IntN(3) == 0 {
		g.Parent = of(p, p.groups)
	}
	if p.IntN(5) == 0 {
		g.ExpireIn = 30 * time.Second
	}
	if p.m.gather(g) == nil {
		p.groups = append(p.groups, g.ID)
	}
}

func (p *player) add() {
	group := of(p, p.groups)
	for range 1 + p.IntN(3) {
		d := holdfast.Draft{ID: p.id(), Kind: "mail", Group: group}
		for range p.IntN(3) {
			if id := of(p, p.jobs); !id.IsZero() && p.m.jobs[id].Group == group && !slices.Contains(d.After, id) {
				d.After = append(d.After, id)
			}
		}
		if id := of(p, p.jobs); !id.IsZero() && p.m.jobs[id].Group == group && !slices.Contains(d.After, id) && p.IntN(2) == 0 {
			d.When = []holdfast.Condition{{Job: id, On: []holdfast.Outcome{holdfast.OnComplete, holdfast.OnFailed, holdfast.OnCancelled, holdfast.OnEnded}[p.IntN(4)]}}
		}
		d.AfterAll = len(d.After) > 0 && p.IntN(3) == 0
		if p.m.join(d) == nil {
			p.m.insert(d)
			p.jobs = append(p.jobs, d.ID)
		}
	}
}

func (p *player) seal() { _ = p.m.seal(of(p, p.groups)) }

// work settles a claimable job: complete, failed or retried.
func (p *player) work() {
	r := p.m.jobs[of(p, p.jobs)]
	if r == nil || r.place != ready {
		return
	}
	batch := p.id()
	p.m.take(store.Claim{Worker: "w", Limit: 1, Start: 1, Lease: time.Minute}, []*record{r}, batch)
	s := store.Settlement{Batch: batch, Job: r.ID, Token: r.Token, To: holdfast.Complete}
	switch p.IntN(6) {
	case 0:
		s.To, s.Charge = holdfast.Queued, store.ChargeRelease
	case 1, 2:
		s.To, s.Charge, s.Failure = holdfast.Failed, store.ChargeFailure, &holdfast.Failure{Code: "BROKEN"}
	}
	_ = p.m.settle(s)
}

func (p *player) advanceGroups() { p.m.advanceGroups() }

func (p *player) word() store.Intervention {
	return store.Intervention{Job: of(p, p.jobs), Group: of(p, p.groups), Actor: "ada"}
}

func (p *player) retry()       { _, _ = p.m.retry(p.word()) }
func (p *player) retryGroup()  { _, _ = p.m.retryGroup(p.word()) }
func (p *player) cancelGroup() { _ = p.m.cancelGroup(p.word()) }
func (p *player) cancelJob()   { _, _ = p.m.cancel(p.word()) }

func (p *player) redrive() {
	_, _ = p.m.redrive(store.Redrive{ID: p.id(), Jobs: []holdfast.ID{of(p, p.jobs), of(p, p.jobs)}, Actor: "ada"})
}

// invariant returns what is wrong with the groups, or "".
func (p *player) invariant(advanced bool) string {
	for _, g := range p.m.groups {
		members := p.m.members(g.ID)
		switch {
		case g.State.Settled() && members.Live() > 0:
			return fmt.Sprintf("a group is %s while members are live: %+v", g.State, members)
		case g.State.Settled() && g.ending == "" && g.State != members.Outcome(g.Quorum):
			return fmt.Sprintf("a group is %s, and its members make it %s: %+v", g.State, members.Outcome(g.Quorum), members)
		case g.State.Settled() && g.ending != "" && g.State != g.ending:
			return fmt.Sprintf("a group that was to be %s is %s", g.ending, g.State)
		case advanced && g.State == holdfast.GroupProcessing && members.Live() == 0:
			return "a sealed group without a live member is not settled"
		case advanced && g.ending != "" && members.Waiting+members.Queued > 0:
			return fmt.Sprintf("members of a group that is ending are not cancelled: %+v", members)
		}
		for generation, times := range g.settled {
			if times != 1 {
				return fmt.Sprintf("a group was settled %d times in generation %d", times, generation)
			}
		}
		if n := countIf(g.State.Settled()); len(g.settled) > g.Generation-1+n {
			return fmt.Sprintf("a group of generation %d was settled %d times", g.Generation, len(g.settled))
		}
	}
	return p.order(advanced)
}

// order checks that no member has started before those it waits for, and that none waits in vain.
func (p *player) order(advanced bool) string {
	for _, r := range p.m.jobs {
		live, bad := p.m.upstream(r)
		switch {
		case r.place == waiting && advanced && (live == 0 || len(bad) > 0):
			return "a job waits in vain"
		case r.place == waiting && r.Token > 0 && !r.conditional():
			return "a job that has run waits for others"
		case !r.Upstream.IsZero() && (r.place != finished || r.state != holdfast.Cancelled || r.Token > 0 && !r.conditional()):
			return "a job that was cancelled because of another is not"
		case r.Skipped && r.Upstream.IsZero():
			return "a job was skipped because of no other"
		case r.Generation == 1 && r.Token > 0 && len(bad) > 0 && p.unmoved(r):
			return "a job ran although a member did not end as it must"
		case r.Generation == 1 && r.Token > 0 && len(r.waits) > 0 && p.early(r):
			return "a job ran before those for which it waits had ended once"
		}
	}
	return ""
}

// early reports whether a member that another waited for has never ended.
func (p *player) early(r *record) bool {
	return slices.ContainsFunc(r.waits, func(c holdfast.Condition) bool {
		other := p.m.jobs[c.Job]
		return other.place != finished && other.Generation == 1
	})
}

// unmoved reports whether all members that another waited for are in their first generation.
func (p *player) unmoved(r *record) bool {
	return !slices.ContainsFunc(r.waits, func(c holdfast.Condition) bool { return p.m.jobs[c.Job].Generation > 1 })
}
