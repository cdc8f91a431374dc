package work

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/upload"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// Limits are how long an attempt may take and when it is repeated. How often is in the Task: a manifest may set its own limits.
type Limits struct {
	Download     time.Duration // the longest download
	Base         time.Duration // delay of the first retry, doubled each time up to 10 min
	Crashes      int           // workers that a resource may lose
	CountNoProxy bool          // a resource spends an attempt when no proxy of its pool is usable; otherwise it waits and spends nothing
}

// maxRetryLimit is the largest limit of attempts that a manifest or the settings can have.
const maxRetryLimit = 100

// policy returns when a resource is retried. The number of attempts is counted by the handler, for downloads and uploads separately; see attemptLimit.
func (l Limits) policy() failure.Policy {
	p := code.Limits{Downloads: 2 * maxRetryLimit, Storage: 2 * maxRetryLimit, Base: l.Base}.Policy()
	p.MaxCrashes = l.Crashes
	return p
}

// attemptLimit ends the task when the attempts of its stage are used up. Downloads and uploads have limits of their own: a resource that needed all its downloads but
// one has still all attempts to be stored.
func (w *Worker) attemptLimit(job *engine.Job[Task], at checkpoint, err error) error {
	rules := failure.Rules{Taxonomy: code.Taxonomy(), Classify: code.Classify, Policy: w.cfg.Limits.policy()}
	v := failure.Decide(rules, job.Lease, failure.Outcome{Event: failure.Returned, Err: err})
	if v.Charge != store.ChargeFailure || v.To != holdfast.Queued {
		return err // it spends no attempt, or ends the task anyway
	}
	limit, name := job.Args.Downloads, "download_retry_limit"
	if at.Downloaded && !strings.HasPrefix(v.Failure.Code, "DOWNLOAD_") {
		limit, name = job.Args.Storage, "storage_retry_limit"
	}
	if job.Failures-at.Failures+1 < limit {
		return err
	}
	return failure.NeverRetry(failure.With(err, name, strconv.Itoa(limit)))
}

// storageBreaker opens when half of the last twenty uploads failed.
var storageBreaker = breaker.Config{Window: 20, MinCalls: 10, FailureRate: 0.5, OpenFor: 10 * time.Second, OpenMax: 5 * time.Minute}

// Breakers returns the breakers of what resources depend on: the object storage.
func Breakers() map[string]breaker.Config {
	return map[string]breaker.Config{upload.Dependency: storageBreaker}
}

// Dependencies returns what resources depend on, for the engine. While the breaker of the object storage is open, resources wait and spend no attempt.
func (w *Worker) Dependencies() map[string]engine.Dependency {
	return map[string]engine.Dependency{upload.Dependency: {Breaker: storageBreaker, NoBudget: true, Probe: w.ProbeStorage}}
}
