package chaos

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// A kill records which process was killed, and when.
type kill struct {
	process int
	at      int64
}

// An injector injects faults into the processes and the database of a run, and counts them.
type injector struct {
	fleet    *fleet
	database *database
	random   *rand.Rand
	lease    time.Duration

	faults    map[string]int
	kills     []kill
	frozen    []frozen
	nextMajor time.Time
	pending   chan databaseFault // receives the result of the database fault in progress; nil: none
}

// A databaseFault is a finished database fault. err is not nil if the fault could not be injected.
type databaseFault struct {
	name string
	err  error
}

// A frozen worker is stopped until its leases have expired, then continued: it does not notice that time has passed.
type frozen struct {
	process *process
	wake    time.Time
	end     time.Time // when it is killed
	awake   bool
}

// maxFrozen is the maximum number of frozen workers.
const maxFrozen = 4

// run injects faults until the given time.
func (s *injector) run(ctx context.Context, until time.Time) error {
	s.faults = map[string]int{}
	s.nextMajor = time.Now().Add(time.Second)
	for time.Now().Before(until) && ctx.Err() == nil {
		sleep(ctx, time.Duration(40+s.random.IntN(111))*time.Millisecond)
		s.resumeFrozen(time.Now())
		if err := s.fleet.refill(); err != nil {
			return err
		}
		inject := s.injectFault
		if len(s.fleet.spec.Servers) > 0 {
			inject = s.injectServerFault
		}
		if err := inject(ctx); err != nil {
			return err
		}
	}
	return nil
}

// injectFault injects one fault into a process, and sometimes starts one in the database.
func (s *injector) injectFault(ctx context.Context) error {
	if time.Now().After(s.nextMajor) {
		s.nextMajor = time.Now().Add(time.Second + time.Duration(s.random.IntN(2500))*time.Millisecond)
		s.startDatabaseFault(ctx)
	}
	s.finishDatabaseFault(false)
	roll := s.random.IntN(100)
	if roll < 6 {
		if p := s.pick(roleProducer); p != nil {
			s.kill(p, "sigkill_producer")
		}
		return s.fleet.refill()
	}
	p := s.pick(roleWorker)
	switch {
	case p == nil:
		return nil
	case roll < 35 && len(s.frozen) < maxFrozen:
		return s.freeze(p)
	case roll < 55:
		s.faults["sigterm"]++
		p.asked = true
		p.signal(sigTerm)
	default:
		s.kills = append(s.kills, kill{process: p.n, at: time.Now().UnixNano()})
		s.kill(p, "sigkill")
	}
	return s.fleet.refill()
}

// pick chooses a random process of a role that is running and was not asked to end.
func (s *injector) pick(role string) *process {
	var candidates []*process
	for _, p := range s.fleet.slots {
		if p.role == role && p.process.alive() && !p.process.asked {
			candidates = append(candidates, p.process)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return candidates[s.random.IntN(len(candidates))]
}

func (s *injector) kill(p *process, name string) {
	s.faults[name]++
	p.asked = true
	p.signal(sigKill)
}

func (s *injector) freeze(p *process) error {
	s.faults["sigstop"]++
	p.signal(sigStop)
	wake := time.Now().Add(s.lease + time.Duration(s.random.Int64N(int64(s.lease/2))))
	s.frozen = append(s.frozen, frozen{process: p, wake: wake, end: wake.Add(time.Duration(200+s.random.IntN(1200)) * time.Millisecond)})
	return s.fleet.replace(p)
}

// resumeFrozen continues frozen workers when it is time, and kills them a while later.
func (s *injector) resumeFrozen(now time.Time) {
	s.frozen = slices.DeleteFunc(s.frozen, func(f frozen) bool {
		if now.Before(f.end) {
			return false
		}
		s.kill(f.process, "sigkill_zombie")
		return true
	})
	for i := range s.frozen {
		if f := &s.frozen[i]; !f.awake && now.After(f.wake) {
			f.awake = true
			s.faults["sigcont"]++
			f.process.signal(sigCont)
		}
	}
}

// end continues all frozen workers and waits for the database fault in progress. The workers may still settle their jobs or find their leases lost.
func (s *injector) end() {
	for _, f := range s.frozen {
		f.process.signal(sigCont)
	}
	s.frozen = nil
	s.finishDatabaseFault(true)
}

// startDatabaseFault starts a database fault in the background, unless one is in progress.
func (s *injector) startDatabaseFault(ctx context.Context) {
	if s.pending != nil {
		return
	}
	faults := s.database.faults()
	names := slices.Sorted(maps.Keys(faults))
	name := names[s.random.IntN(len(names))]
	s.pending = make(chan databaseFault, 1)
	go func(over chan<- databaseFault) { over <- databaseFault{name, faults[name](ctx)} }(s.pending)
}

// finishDatabaseFault counts the database fault in progress if it has finished; if must is true it waits for it. Faults that could not be injected are counted separately.
func (s *injector) finishDatabaseFault(must bool) {
	if s.pending == nil {
		return
	}
	var over databaseFault
	if must {
		over = <-s.pending
	} else {
		select {
		case over = <-s.pending:
		default:
			return
		}
	}
	s.pending = nil
	if over.err != nil {
		over.name = "refused_" + over.name
	}
	s.faults[over.name]++
}
