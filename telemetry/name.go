package telemetry

import "github.com/prometheus/client_golang/prometheus"

// A name is a metric: its name, its unit in OpenTelemetry, its help text and its labels. Metrics, dashboard and alert rules all use these values.
type name struct {
	metric string
	unit   string // empty for flags and states
	help   string
	labels []string
}

func (n name) String() string { return n.metric }

// Metrics of this process, from the hooks of its engine and its server. They may be summed over processes.
var (
	jobsEnqueued = name{"holdfast_jobs_enqueued_total", "{job}", "Jobs that were added.", by("queue", "kind")}
	jobsComplete = name{"holdfast_jobs_completed_total", "{job}", "Jobs that completed.", by("queue", "kind")}
	jobsFailed   = name{"holdfast_jobs_failed_total", "{job}", "Jobs that failed for good, without benign failures.", by("queue", "kind", "code")}
	jobsBenign   = name{"holdfast_jobs_benign_total", "{job}", "Jobs that failed for good with a benign failure; they are not dead letters.", by("queue", "kind", "code")}
	jobsStopped  = name{"holdfast_jobs_cancelled_total", "{job}", "Running jobs that were cancelled by a person.", by("queue", "kind")}
	jobsLost     = name{"holdfast_jobs_reclaimed_total", "{job}", "Attempts that were reclaimed because their worker stopped renewing.", by("queue", "kind")}
	jobsFinal    = name{"holdfast_jobs_nonretryable_total", "{job}", "Jobs that failed for good with attempts left, because the failure is not retryable.", by("kind", "code")}
	jobsManual   = name{"holdfast_manual_retries_total", "{job}", "Manual retries and redriven jobs, counted when the first attempt after that ended.", by("queue", "kind")}

	attempts     = name{"holdfast_attempts_total", "{attempt}", "Attempts that ended, by outcome.", by("queue", "kind", "outcome")}
	attemptTime  = name{"holdfast_attempt_duration_seconds", "s", "Duration of attempts.", by("queue", "kind")}
	callTime     = name{"holdfast_dependency_call_seconds", "s", "Duration of attempts that call a dependency.", by("dependency")}
	successes    = name{"holdfast_success_attempts_total", "{job}", "Jobs that completed, by the number of the attempt that completed them.", by("attempt")}
	retries      = name{"holdfast_retries_scheduled_total", "{retry}", "Failed attempts after which a retry was scheduled.", by("kind", "code")}
	throttled    = name{"holdfast_throttled_total", "{attempt}", "Attempts that a dependency throttled; they cost no attempt.", by("queue", "kind", "code")}
	retryDelay   = name{"holdfast_retry_delay_seconds", "s", "Delay before the next attempt.", nil}
	requests     = name{"holdfast_http_requests_total", "{request}", "Requests that were answered.", by("route", "status")}
	requestTime  = name{"holdfast_http_request_duration_seconds", "s", "Duration of requests.", by("route")}
	buildInfo    = name{"holdfast_build_info", "", "Always 1; the labels identify the build.", by("version", "goversion")}
	sourceErrors = name{"holdfast_read_errors_total", "{error}", "Reads of the store that failed.", by("question")}
)

// Metrics of the store. Every process reports the same values, so take the maximum over processes and not the sum.
var (
	storeUp = name{"holdfast_store_up", "", "1 while the store answers in time.", nil}

	queueDepth   = name{"holdfast_queue_depth", "{job}", "Queued jobs: ready to be claimed, or due later.", by("queue", "place")}
	queueOldest  = name{"holdfast_queue_oldest_seconds", "s", "Age of the oldest job that is ready to be claimed.", by("queue")}
	queueAtLeast = name{"holdfast_queue_at_least", "", "1 while the store stopped counting: depth, processing and dead letters of this queue may be higher than shown.", by("queue")}
	queueHeld    = name{"holdfast_queue_held", "", "1 while the queue is paused.", by("queue")}
	processing   = name{"holdfast_jobs_processing", "{job}", "Jobs that are processing.", by("queue")}
	deadLetters  = name{"holdfast_dead_letters", "{job}", "Jobs that failed for good and are kept.", by("queue")}
	workers      = name{"holdfast_workers", "{worker}", "Workers that are alive.", nil}
	slots        = name{"holdfast_worker_slots", "{slot}", "Jobs that all workers can process at once.", nil}

	holds    = name{"holdfast_holds", "{hold}", "Holds in force, by what placed them.", by("source")}
	heldJobs = name{"holdfast_held_jobs", "{job}", "Due jobs that holds keep back, up to ten thousand for each hold.", by("source")}

	breakerState   = name{"holdfast_breaker_state", "", "1 for the state that a breaker is in.", by("dependency", "state")}
	breakerOpen    = name{"holdfast_breaker_open_seconds", "s", "How long the breaker has been open; 0 while it is not.", by("dependency")}
	breakerWaiting = name{"holdfast_breaker_waiting_jobs", "{job}", "Due jobs that wait for a breaker.", by("dependency")}

	dutyLag    = name{"holdfast_duty_lag_seconds", "s", "How long the next run of a duty is overdue in all workers.", by("duty")}
	dutyErred  = name{"holdfast_duty_last_error_timestamp_seconds", "s", "Time of the last error of a duty; 0: none since its workers started.", by("duty")}
	dutyPaused = name{"holdfast_duty_paused", "", "1 while a person has paused the duty.", by("duty")}

	feedLag       = name{"holdfast_feed_lag_seconds", "s", "Lag of the feed: how long the duty that numbers events is overdue.", nil}
	subscriptions = name{"holdfast_subscriptions", "{subscription}", "Subscriptions, by state: told (active) or disabled.", by("sink", "state")}
	behind        = name{"holdfast_subscription_lag_events", "{event}", "Events of the feed that the slowest subscription has not been checked against.", by("sink")}

	redrives     = name{"holdfast_redrives", "{redrive}", "Redrives, by state.", by("state")}
	redriving    = name{"holdfast_redrive_running_jobs", "{job}", "Jobs taken by running redrives, by state.", by("state")}
	snapshotAge  = name{"holdfast_glance_age_seconds", "s", "Age of the store metrics.", nil}
	snapshotTook = name{"holdfast_glance_duration_seconds", "s", "Duration of the last read of the store.", nil}
)

func by(labels ...string) []string { return labels }

// storeMetrics are the metrics that come from the store.
var storeMetrics = []name{
	storeUp, queueDepth, queueOldest, queueAtLeast, queueHeld, processing, deadLetters, workers, slots, holds, heldJobs, breakerState, breakerOpen, breakerWaiting,
	dutyLag, dutyErred, dutyPaused, feedLag, subscriptions, behind, redrives, redriving, snapshotAge, snapshotTook,
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
