package telemetry

import "github.com/prometheus/client_golang/prometheus"

// A name is a metric: how it is called, what it says, and by what it is told apart. Metrics, dashboard and alert rules all go by these.
type name struct {
	metric string
	help   string
	labels []string
}

func (n name) String() string { return n.metric }

// What this process did, by the hooks of its engine and its server. Sums over processes make sense.
var (
	jobsEnqueued = name{"holdfast_jobs_enqueued_total", "Jobs that were acknowledged and are new.", by("queue", "kind")}
	jobsComplete = name{"holdfast_jobs_completed_total", "Jobs that completed.", by("queue", "kind")}
	jobsFailed   = name{"holdfast_jobs_failed_total", "Jobs that failed for good, without those that were to be expected.", by("queue", "kind", "code")}
	jobsBenign   = name{"holdfast_jobs_benign_total", "Jobs that failed for good as was to be expected: no dead letters.", by("queue", "kind", "code")}
	jobsStopped  = name{"holdfast_jobs_cancelled_total", "Jobs whose worker stopped because a person asked for it.", by("queue", "kind")}
	jobsLost     = name{"holdfast_jobs_reclaimed_total", "Attempts taken over from workers that went silent.", by("queue", "kind")}
	jobsFinal    = name{"holdfast_jobs_nonretryable_total", "Jobs that failed for good with attempts left: retrying could not help.", by("kind", "code")}
	jobsManual   = name{"holdfast_manual_retries_total", "Jobs that a person or a redrive sent round again, counted when the first attempt after that ended.", by("queue", "kind")}

	attempts     = name{"holdfast_attempts_total", "Attempts that ended, by what became of the job.", by("queue", "kind", "outcome")}
	attemptTime  = name{"holdfast_attempt_duration_seconds", "How long attempts ran.", by("queue", "kind")}
	callTime     = name{"holdfast_dependency_call_seconds", "How long attempts ran that call a dependency.", by("dependency")}
	successes    = name{"holdfast_success_attempts_total", "Jobs that completed, by the number of the attempt that did it.", by("attempt")}
	retries      = name{"holdfast_retries_scheduled_total", "Attempts that failed and will be made again.", by("kind", "code")}
	throttled    = name{"holdfast_throttled_total", "Attempts that the other side asked to come back later; they spent nothing.", by("queue", "kind", "code")}
	retryDelay   = name{"holdfast_retry_delay_seconds", "How long jobs wait for their next attempt.", nil}
	requests     = name{"holdfast_http_requests_total", "Requests that were answered.", by("route", "status")}
	requestTime  = name{"holdfast_http_request_duration_seconds", "How long requests took.", by("route")}
	buildInfo    = name{"holdfast_build_info", "Always 1; the labels say which build this is.", by("version", "goversion")}
	deskTroubles = name{"holdfast_desk_errors_total", "Questions about the store that were not answered.", by("question")}
)

// What the store says. Every process that asks says the same, so the maximum over processes makes sense and the sum does not.
var (
	storeUp = name{"holdfast_store_up", "1 while the store answers in time.", nil}

	queueDepth   = name{"holdfast_queue_depth", "Queued jobs: ready to be claimed, or due later.", by("queue", "place")}
	queueOldest  = name{"holdfast_queue_oldest_seconds", "Age of the oldest job that is ready to be claimed.", by("queue")}
	queueAtLeast = name{"holdfast_queue_at_least", "1 while the store has more than it counts: depths, jobs in the hands of workers and dead letters of this queue may be more than is told.", by("queue")}
	queueHeld    = name{"holdfast_queue_held", "1 while the queue is paused.", by("queue")}
	processing   = name{"holdfast_jobs_processing", "Jobs in the hands of workers.", by("queue")}
	deadLetters  = name{"holdfast_dead_letters", "Jobs that failed for good and are kept.", by("queue")}
	workers      = name{"holdfast_workers", "Workers that are alive.", nil}
	slots        = name{"holdfast_worker_slots", "How many jobs all workers can process at once.", nil}

	holds    = name{"holdfast_holds", "Holds in force, by what placed them.", by("source")}
	heldJobs = name{"holdfast_held_jobs", "Due jobs that holds stand before, up to ten thousand for each.", by("source")}

	breakerState   = name{"holdfast_breaker_state", "1 for the state that a breaker is in.", by("dependency", "state")}
	breakerOpen    = name{"holdfast_breaker_open_seconds", "For how long the dependency has not been called; 0 while it is.", by("dependency")}
	breakerWaiting = name{"holdfast_breaker_waiting_jobs", "Due jobs that wait for a breaker.", by("dependency")}

	dutyLag    = name{"holdfast_duty_lag_seconds", "How long the next round of a duty is overdue, everywhere.", by("duty")}
	dutyErred  = name{"holdfast_duty_last_error_timestamp_seconds", "When a duty last had trouble; 0: not since its workers started.", by("duty")}
	dutyPaused = name{"holdfast_duty_paused", "1 while a person has paused the duty.", by("duty")}

	feedLag       = name{"holdfast_feed_lag_seconds", "How long events wait to be numbered beyond their time: the lag of the duty that does it.", nil}
	subscriptions = name{"holdfast_subscriptions", "Subscriptions, by whether they are told.", by("sink", "state")}
	behind        = name{"holdfast_subscription_lag_events", "How many events of the feed the slowest subscription was not asked about yet.", by("sink")}

	redrives   = name{"holdfast_redrives", "Redrives on record, by how they stand.", by("state")}
	redriving  = name{"holdfast_redrive_running_jobs", "Jobs taken by redrives under way, by what became of them.", by("state")}
	glanceAge  = name{"holdfast_glance_age_seconds", "How old what is told here about the store is.", nil}
	glanceTook = name{"holdfast_glance_duration_seconds", "How long asking the store took.", nil}
)

func by(labels ...string) []string { return labels }

// told are the metrics that come from the store.
var told = []name{
	storeUp, queueDepth, queueOldest, queueAtLeast, queueHeld, processing, deadLetters, workers, slots, holds, heldJobs, breakerState, breakerOpen, breakerWaiting,
	dutyLag, dutyErred, dutyPaused, feedLag, subscriptions, behind, redrives, redriving, glanceAge, glanceTook,
}

func (n name) desc() *prometheus.Desc { return prometheus.NewDesc(n.metric, n.help, n.labels, nil) }

func (n name) counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: n.metric, Help: n.help}, n.labels)
}

func (n name) gauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: n.metric, Help: n.help}, n.labels)
}

func (n name) histogram(buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: n.metric, Help: n.help, Buckets: buckets}, n.labels)
}
