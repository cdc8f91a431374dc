package engine

import (
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// SetSlots changes how many handlers run at once. With fewer slots than before, the handlers that run continue, and no other one starts until as many have
// returned. It takes effect at once and is not stored: the next engine begins with its Config.
func (e *Engine) SetSlots(slots int) error {
	if err := refuse(slots < 1 || slots > maxSlots, "%d slots: give 1 to %d; to stop claiming from a queue call RemoveQueue", slots, maxSlots); err != nil {
		return err
	}
	e.runner.maxIdle.Store(int64(slots))
	e.change(func(t *leaseTable) { t.slots = slots })
	return nil
}

// SetQueueSlots changes how many jobs of a queue run at once in this engine; 0: no limit but that of all slots. It may be called before AddQueue, and is
// remembered after RemoveQueue. With fewer slots than before, the handlers that run continue, and jobs of the queue that were claimed ahead are released at no cost.
func (e *Engine) SetQueueSlots(queue string, slots int) error {
	if err := e.checkQueue(queue, slots); err != nil {
		return err
	}
	e.change(func(t *leaseTable) { setSlots(t.intake.inQueue, queue, slots) })
	return nil
}

// SetKindSlots changes how many jobs of a kind run at once in this engine; 0: no limit but that of all slots. Otherwise it is like SetQueueSlots. It returns an error
// for a kind that has no handler in an engine that runs.
func (e *Engine) SetKindSlots(kind string, slots int) error {
	if err := refuse(slots < 0 || slots > maxSlots, "%d slots for kind %.140q: give 1 to %d, or 0 for no limit", slots, kind, maxSlots); err != nil {
		return err
	}
	if err := e.registry.checkName(kind); err != nil {
		return err
	}
	e.change(func(t *leaseTable) { setSlots(t.intake.ofKind, kind, slots) })
	return nil
}

// AddQueue adds a queue to those that the engine claims from. Adding a queue that it claims from already is no error.
func (e *Engine) AddQueue(queue string) error {
	if err := e.checkQueue(queue, 0); err != nil {
		return err
	}
	if err := (&holdfast.Draft{Queue: queue}).Reserved(); err != nil && !slices.Contains(e.cfg.Queues, queue) {
		return err
	}
	e.change(func(t *leaseTable) {
		if !t.intake.claims(queue) {
			t.intake.queues = append(slices.Clone(t.intake.queues), queue)
		}
	})
	return nil
}

// RemoveQueue removes a queue: nothing more is claimed from it, its jobs that run continue, and those that were claimed ahead are released at no cost. An engine
// without queues claims nothing until AddQueue. Removing a queue that the engine does not claim from is no error.
func (e *Engine) RemoveQueue(queue string) error {
	if err := e.checkQueue(queue, 0); err != nil {
		return err
	}
	e.change(func(t *leaseTable) {
		t.intake.queues = slices.DeleteFunc(slices.Clone(t.intake.queues), func(name string) bool { return name == queue })
	})
	return nil
}

// checkQueue refuses a change of one queue: in an engine that claims from all queues, because a claim cannot leave a queue out, and with a bad name or number.
func (e *Engine) checkQueue(queue string, slots int) error {
	if slices.Equal(e.cfg.Queues, []string{AllQueues}) {
		return refuse(true, "this engine claims from all queues (Config.Queues is %q), so no queue can be treated by itself: name the queues in Config.Queues", AllQueues)
	}
	if err := refuse(badQueue(queue), "queue %.140q: use 1 to %d letters, digits and _ - . : /", queue, check.MaxName); err != nil {
		return err
	}
	return refuse(slots < 0 || slots > maxSlots, "%d slots for queue %.140q: give 1 to %d, or 0 for no limit", slots, queue, maxSlots)
}

// badQueue reports whether no queue can have that name. It is not checked as that of a draft: the notifier claims from a queue that no draft may name.
func badQueue(queue string) bool {
	probe := store.Hold{Queue: queue, Actor: actorSystem}
	return queue == "" || probe.Check() != nil || strings.HasSuffix(queue, "*")
}

// change changes slots or queues, starts and releases what follows from it, reports the worker as it is now, and claims.
func (e *Engine) change(do func(t *leaseTable)) {
	start, release := e.leases.change(do)
	for _, a := range start {
		e.runner.start(a)
	}
	e.settler.outcomes.releaseAll(release, errSlotsChanged)
	e.keeper.presence.changed.Store(true)
	signal(e.signals.cancel) // runs the duty "renew", which reports the worker
	signal(e.signals.claim)
}

// checkSlots refuses slots of queues that have no effect.
func (c *Config) checkSlots() (problems []error) {
	most := orElse(c.Slots, defaultSlots)
	for _, queue := range sortedKeys(c.QueueSlots) {
		slots := c.QueueSlots[queue]
		problems = append(problems,
			refuse(slots < 1, "QueueSlots[%q] is %d: give a positive number, or leave the queue out for no limit", queue, slots),
			refuse(slots > most, "QueueSlots[%q] is %d and Slots is %d: Slots is the limit of all queues together, so raise it to at least %d", queue, slots, most, slots),
			refuse(slices.Equal(c.Queues, []string{AllQueues}), "QueueSlots names %q and Queues is %q: a claim cannot leave a queue out, so name the queues in Queues", queue, AllQueues),
			refuse(!slices.Contains(c.Queues, queue) && !slices.Equal(c.Queues, []string{AllQueues}) && (queue != holdfast.DefaultQueue || len(c.Queues) > 0),
				"QueueSlots names %q, which is not in Queues: add it there, or correct the name", queue))
	}
	return problems
}
