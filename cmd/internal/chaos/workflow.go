package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Some jobs of every run have order keys, replace others, are members of small groups with conditions, or are enqueued by jobs that complete.

// scriptOf returns the script in the arguments of a job.
func scriptOf(args json.RawMessage) (s script) {
	_ = json.Unmarshal(args, &s) // the arguments of a chaos job are a script
	return s
}

// nextDrafts returns the jobs that the handler of a script enqueues with its completion: members of its group if it has one.
func (s script) nextDrafts(l *store.Lease) []holdfast.Draft {
	drafts := make([]holdfast.Draft, s.Next)
	for i := range drafts {
		drafts[i], _ = holdfast.NewDraft(script{Do: doNothing, Parent: l.ID})
		drafts[i].Queue, drafts[i].Owner, drafts[i].Group = l.Queue, l.Owner, l.Group
		if i == 1 && l.Group.IsZero() {
			drafts[i].Order = "line-0"
		}
	}
	return drafts
}

func (p *producer) orderKey() string { return fmt.Sprintf("line-%d", p.random.IntN(6)) }

// The times of debounced drafts.
const (
	debounceQuiet = 300 * time.Millisecond
	debounceMost  = time.Second
)

// replaceOne enqueues some drafts with one unique key, each of which replaces the one before unless that has been claimed.
func (p *producer) replaceOne(ctx context.Context) {
	key, how := fmt.Sprintf("content-%d", p.random.IntN(4)), func(d *holdfast.Draft) { d.Delay, d.Replace = 200*time.Millisecond, &holdfast.Replace{} }
	if p.random.IntN(2) == 0 {
		key, how = fmt.Sprintf("debounced-%d", p.random.IntN(4)), holdfast.Debounce(debounceQuiet, debounceMost)
	}
	for range 2 + p.random.IntN(3) {
		do := []string{doNothing, doSleep, doFail}[p.random.IntN(3)]
		d, _ := holdfast.NewDraft(script{Do: do, Times: 1, For: 20 * time.Millisecond, Content: holdfast.NewID().String()})
		d.Queue, d.UniqueKey = "left", key
		how(&d)
		p.enqueue(ctx, d)
		sleep(ctx, time.Duration(p.random.IntN(120))*time.Millisecond)
	}
}

// The steps of the small groups: an order is charged and shipped. If it cannot be shipped, the charge is refunded. A report follows in any case.
const (
	stepCharge = "charge"
	stepShip   = "ship"
	stepRefund = "refund" // if the shipping failed
	stepReport = "report" // however the charge and the shipping ended
)

// enqueueGroup creates a small group with conditions and seals it. It repeats every call until it is acknowledged, and then records the group.
func (p *producer) enqueueGroup(ctx context.Context) {
	group := holdfast.Group{ID: holdfast.NewID()}
	until := func(call func() error) bool {
		for ctx.Err() == nil {
			if call() == nil {
				return true
			}
			sleep(ctx, 20*time.Millisecond)
		}
		return false
	}
	created := until(func() error {
		if _, err := p.store.Group(ctx, group.ID); err == nil { // an earlier call was not answered
			return nil
		}
		_, err := p.store.CreateGroup(ctx, group)
		return err
	})
	if !created {
		return
	}
	drafts := p.steps(group.ID)
	var receipts []holdfast.Receipt
	added := until(func() (err error) {
		receipts, err = p.store.Enqueue(ctx, drafts)
		return err
	})
	if !added || !until(func() error { return p.store.SealGroup(ctx, group.ID) }) {
		return
	}
	lines := make([]line, len(drafts))
	for i, r := range receipts {
		lines[i] = line{Saw: sawMember, Till: time.Now().UnixNano(), Job: r.ID, Group: group.ID, Key: drafts[i].Step}
	}
	p.journal.write(lines...)
	p.journal.sync()
}

// steps returns the members of a small group. Each has an idempotency key, so that the call can be repeated.
func (p *producer) steps(group holdfast.ID) []holdfast.Draft {
	drafts := make([]holdfast.Draft, 4)
	for i, step := range []string{stepCharge, stepShip, stepRefund, stepReport} {
		s := script{Do: []string{doNothing, doSleep, doFail, doSnooze, doPanic, doRefuse}[p.random.IntN(6)], Times: 1, For: 20 * time.Millisecond}
		if p.random.IntN(4) == 0 {
			s.Next = 1 + p.random.IntN(2)
		}
		drafts[i], _ = holdfast.NewDraft(s)
		drafts[i].Group, drafts[i].Step, drafts[i].Queue = group, step, []string{"left", "right"}[p.random.IntN(2)]
		drafts[i].IdempotencyKey = group.String() + step
	}
	drafts[1].When = []holdfast.Condition{{Step: stepCharge}}
	drafts[2].When = []holdfast.Condition{{Step: stepShip, On: holdfast.OnFailed}}
	drafts[3].When = []holdfast.Condition{{Step: stepCharge, On: holdfast.OnEnded}, {Step: stepShip, On: holdfast.OnEnded}}
	return drafts
}

// A smallGroup is what the store shows of an acknowledged small group.
type smallGroup struct {
	holdfast.Group
	steps  map[string]holdfast.ID
	events []store.Event
}

// advanceAll does what follows from the ends of members, after all workers have ended.
func advanceAll(ctx context.Context, s store.Store) error {
	for {
		if _, err := s.Sequence(ctx, 1000); err != nil {
			return fmt.Errorf("cannot number the events: %w", err)
		}
		n, err := s.AdvanceGroups(ctx, 1000)
		if err != nil {
			return fmt.Errorf("cannot advance the groups: %w", err)
		}
		if n == 0 {
			return nil
		}
	}
}

// readGroups reads the groups that the journals name.
func readGroups(ctx context.Context, s store.Store, lines []line) (map[holdfast.ID]smallGroup, error) {
	groups := map[holdfast.ID]smallGroup{}
	for _, l := range lines {
		if l.Saw != sawMember {
			continue
		}
		g, seen := groups[l.Group]
		if !seen {
			var err error
			if g.Group, err = s.Group(ctx, l.Group); err != nil {
				return nil, fmt.Errorf("cannot read the group %s: %w", l.Group, err)
			}
			if g.events, err = s.Events(ctx, "group/"+l.Group.String(), 100); err != nil {
				return nil, fmt.Errorf("cannot read the events of the group %s: %w", l.Group, err)
			}
			g.steps = map[string]holdfast.ID{}
		}
		g.steps[l.Key] = l.Job
		groups[l.Group] = g
	}
	return groups, nil
}

// shares says how many jobs of a run belong together.
func (e *evidence) shares() string {
	var inLine, added, replaced int
	for _, job := range e.jobs {
		inLine += countIf(job.Order != "")
		added += countIf(!scriptOf(job.Args).Parent.IsZero())
	}
	for _, l := range e.lines {
		replaced += countIf(l.Saw == sawReceipt && l.Replaced)
	}
	return fmt.Sprintf("%d jobs have order keys, %d were enqueued by other jobs, %d drafts replaced one, and there are %d small groups", inLine, added, replaced, len(e.groups))
}

func countIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
