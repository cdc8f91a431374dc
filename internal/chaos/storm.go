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

// A storm injects faults into the processes and the database of a run, and counts them.
type storm struct {
	fleet  *fleet
	ground *ground
	random *rand.Rand
	lease  time.Duration

	faults  map[string]int
	kills   []kill
	frozen  []frozen
	nextBig time.Time
	shaking chan shaken // receives the result of the database fault in progress; nil: none
}

// A shaken is a finished database fault. err is not nil if the fault could not be injected.
type shaken struct {
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

// rage injects faults until the given time.
func (s *storm) rage(ctx context.Context, until time.Time) error {
	s.faults = map[string]int{}
	s.nextBig = time.Now().Add(time.Second)
	for time.Now().Before(until) && ctx.Err() == nil {
		pause(ctx, time.Duration(40+s.random.IntN(111))*time.Millisecond)
		s.thaw(time.Now())
		if err := s.fleet.tend(); err != nil {
			return err
		}
		strike := s.strike
		if len(s.fleet.part.Servers) > 0 {
			strike = s.strikeServers
		}
		if err := strike(ctx); err != nil {
			return err
		}
	}
	return nil
}

// strike injects one fault into a process, and sometimes starts one in the database.
func (s *storm) strike(ctx context.Context) error {
	if time.Now().After(s.nextBig) {
		s.nextBig = time.Now().Add(time.Second + time.Duration(s.random.IntN(2500))*time.Millisecond)
		s.shake(ctx)
	}
	s.settle(false)
	roll := s.random.IntN(100)
	if roll < 6 {
		if p := s.pick(partProducer); p != nil {
			s.kill(p, "sigkill_producer")
		}
		return s.fleet.tend()
	}
	p := s.pick(partWorker)
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
	return s.fleet.tend()
}

// pick chooses a random process of a role that is running and was not asked to end.
func (s *storm) pick(play string) *process {
	var candidates []*process
	for _, p := range s.fleet.posts {
		if p.play == play && p.holder.alive() && !p.holder.asked {
			candidates = append(candidates, p.holder)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return candidates[s.random.IntN(len(candidates))]
}

func (s *storm) kill(p *process, name string) {
	s.faults[name]++
	p.asked = true
	p.signal(sigKill)
}

func (s *storm) freeze(p *process) error {
	s.faults["sigstop"]++
	p.signal(sigStop)
	wake := time.Now().Add(s.lease + time.Duration(s.random.Int64N(int64(s.lease/2))))
	s.frozen = append(s.frozen, frozen{process: p, wake: wake, end: wake.Add(time.Duration(200+s.random.IntN(1200)) * time.Millisecond)})
	return s.fleet.relieve(p)
}

// thaw continues frozen workers when it is time, and kills them a while later.
func (s *storm) thaw(now time.Time) {
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

// heal continues all frozen workers and waits for the database fault in progress. The workers may still settle their jobs or find their leases lost.
func (s *storm) heal() {
	for _, f := range s.frozen {
		f.process.signal(sigCont)
	}
	s.frozen = nil
	s.settle(true)
}

// shake starts a database fault in the background, unless one is in progress.
func (s *storm) shake(ctx context.Context) {
	if s.shaking != nil {
		return
	}
	faults := s.ground.faults()
	names := slices.Sorted(maps.Keys(faults))
	name := names[s.random.IntN(len(names))]
	s.shaking = make(chan shaken, 1)
	go func(over chan<- shaken) { over <- shaken{name, faults[name](ctx)} }(s.shaking)
}

// settle counts the database fault in progress if it has finished; if must is true it waits for it. Faults that could not be injected are counted separately.
func (s *storm) settle(must bool) {
	if s.shaking == nil {
		return
	}
	var over shaken
	if must {
		over = <-s.shaking
	} else {
		select {
		case over = <-s.shaking:
		default:
			return
		}
	}
	s.shaking = nil
	if over.err != nil {
		over.name = "refused_" + over.name
	}
	s.faults[over.name]++
}
