package service

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

// ObserveAttempt counts and logs the end of an attempt of a shot.
func (s *Service) ObserveAttempt(end engine.AttemptEnd) {
	job := &end.Lease.Job
	if !isShot(job.Kind) {
		return
	}
	s.attempts.observe(end)
	switch {
	case end.To == holdfast.Queued && end.Charge != store.ChargeRelease && end.Failure != nil:
		s.counts.automatic.Add(1)
		s.log.Info("Job failed but scheduled for retry", "event", "retry_scheduled", "job_id", job.ID, "retry_count", end.Attempt, "delay_s", end.Delay.Seconds(), "error_code", end.Failure.Code)
	case end.To == holdfast.Failed:
		if end.Left > 0 {
			s.counts.final.Add(1)
		}
		s.wake()
	case end.To == holdfast.Cancelled:
		s.wake()
	}
}
