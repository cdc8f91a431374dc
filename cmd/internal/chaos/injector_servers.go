package chaos

import (
	"context"
	"strconv"
	"time"
)

// injectServerFault kills servers at random times and starts them again at their addresses. Sometimes it asks one to end, stops one for longer than a lease, or
// kills a worker instead.
func (s *injector) injectServerFault(ctx context.Context) error {
	if time.Now().Before(s.nextMajor) {
		return nil
	}
	s.nextMajor = time.Now().Add(time.Duration(150+s.random.IntN(900)) * time.Millisecond)
	p := s.pick(roleServer + strconv.Itoa(s.random.IntN(len(s.fleet.spec.Servers))))
	switch roll := s.random.IntN(100); {
	case p == nil:
	case roll < 75 || s.faults["sigkill_server"] == 0:
		s.kill(p, "sigkill_server")
		<-p.gone // now its address is free
	case roll < 80:
		s.faults["sigterm_server"]++
		p.asked = true
		p.signal(sigTerm)
		select {
		case <-p.gone:
		case <-time.After(stuckAfter): // its address is still in use, so the restart fails, which is a finding
		}
	case roll < 86:
		s.faults["sigstop_server"]++
		p.signal(sigStop)
		sleep(ctx, s.lease+time.Duration(s.random.Int64N(int64(s.lease))))
		p.signal(sigCont)
	case roll < 95:
		if w := s.pick(roleWorker); w != nil {
			s.kills = append(s.kills, kill{process: w.n, at: time.Now().UnixNano()})
			s.kill(w, "sigkill")
		}
	default:
		if r := s.pick(roleReporter); r != nil {
			s.kill(r, "sigkill_reporter")
		}
	}
	return s.fleet.refill()
}
