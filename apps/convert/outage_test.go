package main

import (
	"context"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// outage plays five minutes without a gateway: jobs keep coming all the time. Then it is back.
func outage(s *scene, goes, comes func()) (ids []holdfast.ID) {
	s.Helper()
	s.works()
	s.joins()
	for n := range 6 {
		ids = append(ids, s.enters(n))
	}
	for _, id := range ids {
		s.becomes(id, holdfast.Complete)
	}
	goes()
	for n := range 60 {
		ids = append(ids, s.enters(100+n))
		<-time.After(5 * time.Second)
		if n == 5 {
			expect(s, "breaker after half a minute", s.breaker(), "open")
		}
	}
	spent := 0
	for _, id := range ids[6:] {
		job := s.job(id)
		expect(s, "while it is down", job.State, holdfast.Queued)
		spent += job.Failures + job.Crashes
	}
	if spent > 4 {
		s.Errorf("%d attempts were spent to find out", spent)
	}
	comes()
	back := time.Now()
	for _, id := range ids {
		s.becomes(id, holdfast.Complete)
	}
	if took := time.Since(back); took > 3*time.Minute {
		s.Errorf("the backlog of 60 took %v to drain", took)
	}
	s.until("breaker closed", func() bool { return s.breaker() == "closed" })
	s.oneXML(ids...)
	return ids
}

// Issue 7, proof; C7; 000 section 4 and section 11: gateway down for five minutes: jobs stay queued, the breaker is open, and everything drains after.
func TestAnOutageOfFiveMinutesCostsNothingButTime(t *testing.T) {
	tell(t, func(s *scene) { outage(s, s.gateway.stops, s.gateway.starts) })
}

// A gateway that answers is judged by its calls, whatever its health check says: a file that it does not convert fails after its attempts (000 section 11, 001 section 5).
func TestAGatewayThatAnswersBadlyIsJudgedByItsCalls(t *testing.T) {
	for code, does := range map[string]func(*script){
		codeGW5XX:     func(g *script) { g.says(503, "") },
		codeGWTimeout: (*script).hangs,
	} {
		t.Run(code, func(t *testing.T) {
			tell(t, func(s *scene) {
				s.works()
				s.gateway.health(false)
				does(s.gateway)
				id := s.enters(0)
				s.becomes(id, holdfast.Failed)
				job := s.job(id)
				expect(s, "code", job.LastFailure.Code, code)
				expect(s, "failures", job.Failures, 3)
				expect(s, "breaker", s.breaker(), "closed")
			})
		})
	}
}

// A lone file that comes while the gateway is down must not spend its attempts: it alone never fills the breaker's window of twenty calls.
func TestALoneFileWaitsForTheGateway(t *testing.T) {
	tell(t, func(s *scene) {
		s.works()
		s.becomes(s.enters(0), holdfast.Complete)
		s.gateway.stops()
		id := s.enters(1)
		<-time.After(10 * time.Minute)
		job := s.job(id)
		expect(s, "state", job.State, holdfast.Queued)
		if job.Failures > 2 {
			s.Errorf("it has %d failures", job.Failures)
		}
		s.gateway.starts()
		s.becomes(id, holdfast.Complete)
	})
}

// A disturbance of one second does not open the breaker.
func TestOneFailedHealthCheckDoesNotOpenTheBreaker(t *testing.T) {
	tell(t, func(s *scene) {
		s.works()
		for range 20 {
			s.gateway.stops()
			<-time.After(900 * time.Millisecond)
			s.gateway.starts()
			<-time.After(7300 * time.Millisecond)
		}
		expect(s, "breaker", s.breaker(), "closed")
	})
}

// A breaker that an operator forced closed stays closed.
func TestTheWatchLeavesAForcedBreakerAlone(t *testing.T) {
	tell(t, func(s *scene) {
		s.works()
		s.becomes(s.enters(0), holdfast.Complete)
		if err := s.operator.ForceBreaker(context.Background(), dependencyGateway, false, ops.Actor{Name: "me", Reason: "I know better"}); err != nil {
			s.Fatal(err)
		}
		s.gateway.stops()
		<-time.After(time.Minute)
		expect(s, "breaker", s.breaker(), "forced-closed")
	})
}

// CIRCUIT_COOLDOWN_MS: the breaker stays open for that time, even if the gateway is healthy.
func TestTheCooldownIsKept(t *testing.T) {
	tell(t, func(s *scene) {
		s.works()
		s.gateway.stops()
		s.until("breaker open", func() bool { return s.breaker() == "open" })
		opened := time.Now()
		s.gateway.starts()
		s.until("breaker moves", func() bool { return s.breaker() != "open" })
		if took := time.Since(opened); took < 100*time.Second || took > 3*time.Minute {
			s.Errorf("it was open for %v", took)
		}
	}, func(set *settings) { set.CircuitCooldown = 2 * time.Minute })
}
