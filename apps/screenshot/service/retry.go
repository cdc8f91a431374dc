package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/store"
)

// A Retried is the answer to a manual retry.
type Retried struct {
	ID            holdfast.ID `json:"jobId"`
	Message       string      `json:"message"`
	QueuePosition int         `json:"queuePosition"`
}

const (
	messageRetried = "Job queued for manual retry"
	messageState   = "Job must be in FAILED status or stuck (>30 min processing)"
	messageBusy    = "Job is currently being processed by another worker"
)

// retryTime is how long a retry may take in the store. It is shorter than the age at which the reservation of a retry that was never made is released.
const retryTime = 30 * time.Second

// Retry retries a shot by hand: one that failed, one that waits for an automatic retry, which it replaces, or one that has been processed for more than 30 minutes. A
// failed shot is paid again, so its credits are reserved again; in the other cases the first reservation continues. requestedBy is what the client says about who asks; it is
// recorded beside the caller.
//
// The store decides which of several retries at the same time is made, and whether a worker was faster. The others are refused with CONCURRENT_MODIFICATION and change
// nothing.
func (s *Service) Retry(ctx context.Context, c Caller, id holdfast.ID, requestedBy string) (Retried, error) {
	if len(requestedBy) > 100 {
		return Retried{}, invalid("requestedBy", "it has more than 100 bytes")
	}
	job, err := s.own(ctx, c.Owner, id)
	if err != nil {
		return Retried{}, err
	}
	v, err := s.view(&job)
	if err != nil {
		return Retried{}, err
	}
	if v.Refusal != "" {
		return Retried{}, refuse(v.Status)
	}
	reserved, err := s.reserveRetry(ctx, c, &job)
	if err != nil {
		return Retried{}, err
	}
	ahead, err := s.retry(ctx, c, &job, requestedBy)
	if err != nil {
		return Retried{}, s.undoRetry(ctx, &job, reserved, err)
	}
	s.counts.manual.Add(1)
	if v.NextRetryAt != nil {
		s.log.Info("Cancelled scheduled automatic retry for manual retry", "event", "delayed_job_cancelled", "job_id", id)
	}
	s.log.Info("Manual retry requested", "event", "manual_retry", "job_id", id, "user", c.Name)
	return Retried{id, messageRetried, ahead + 1}, nil
}

// refuse returns the refusal of a retry of a shot with a status.
func refuse(status string) error {
	if status == Processing {
		return &Error{Code: code.ConcurrentModification, Message: messageBusy}
	}
	return &Error{Code: code.Validation, Message: messageState}
}

// reserveRetry counts a retry against the budgets, and reserves the credits of the next generation of a failed shot. Those of its last generation, if they are still
// reserved, are released in the same transaction.
func (s *Service) reserveRetry(ctx context.Context, c Caller, job *holdfast.Job) (reserved bool, err error) {
	r, err := requestOf(job)
	if err != nil {
		return false, err
	}
	pays := job.State == holdfast.Failed
	err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		cost := r.Cost
		if !pays {
			cost = 0
		}
		if err := s.takeBudget(ctx, tx, c, job, cost); err != nil || !pays {
			return err
		}
		if _, err := s.ledger.Release(ctx, tx, job.ID, job.Generation, "failed"); err != nil {
			return err
		}
		return s.ledger.Reserve(ctx, tx, credit.Reservation{Owner: job.Owner, Job: job.ID, Generation: job.Generation + 1, Amount: r.Cost, Note: "manual retry"})
	})
	short := (*credit.Insufficient)(nil)
	switch {
	case errors.Is(err, credit.ErrReserved):
		return false, &Error{Code: code.ConcurrentModification, Message: messageBusy}
	case errors.As(err, &short):
		return false, &Error{Code: code.InsufficientCredits, Short: short}
	}
	return err == nil && pays, explain(err)
}

func (s *Service) retry(ctx context.Context, c Caller, job *holdfast.Job, requestedBy string) (int, error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), retryTime) // a client that goes away does not leave a reservation without a retry
	defer cancel()
	reason := "manual retry"
	if requestedBy != "" {
		reason += " requested by " + requestedBy
	}
	return s.cfg.Operator.Retry(limited, store.Intervention{Job: job.ID, Owner: job.Owner, Actor: c.Name, Reason: reason, Request: c.Request, StuckAfter: s.cfg.StuckAfter})
}

// undoRetry handles a retry that the store refused, and returns the refusal for the client. If the next generation exists nevertheless, the reservation is that of
// whatever made it.
func (s *Service) undoRetry(ctx context.Context, before *holdfast.Job, reserved bool, refused error) error {
	ctx = context.WithoutCancel(ctx)
	now, err := s.jobs.Job(ctx, before.ID)
	if err != nil {
		return explain(err) // the reservation is released by the duty
	}
	if now.Generation == before.Generation {
		err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
			if err := s.returnBudget(ctx, tx, before.ID, before.Generation+1); err != nil || !reserved {
				return err
			}
			_, err := s.ledger.Release(ctx, tx, before.ID, before.Generation+1, "the retry was refused")
			return err
		})
		if err != nil {
			s.log.Warn("a reservation could not be released, the duty will do it", "event", "release_failed", "job_id", before.ID, "error", err.Error())
		}
	}
	if !errors.Is(refused, holdfast.ErrConflict) {
		return explain(refused)
	}
	if now.State == holdfast.Complete || now.State == holdfast.Cancelled {
		return refuse(statusOf[now.State])
	}
	return refuse(Processing) // a worker or another retry was faster
}

// Cancel cancels a shot: a queued one at once, a running one as soon as its worker has stopped. Its credits are released. It returns the status.
func (s *Service) Cancel(ctx context.Context, c Caller, id holdfast.ID) (string, error) {
	job, err := s.own(ctx, c.Owner, id)
	if err != nil {
		return "", err
	}
	state, err := s.cfg.Operator.Cancel(ctx, store.Intervention{Job: id, Owner: job.Owner, Actor: c.Name, Reason: "requested by the user", Request: c.Request})
	if errors.Is(err, holdfast.ErrConflict) {
		return "", &Error{Code: code.Validation, Message: fmt.Sprintf("Job must be in QUEUED or PROCESSING status; it is %s", statusOf[job.State])}
	}
	if err != nil {
		return "", explain(err)
	}
	s.wake()
	return statusOf[state], nil
}
