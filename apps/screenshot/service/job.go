package service

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// A JobType is the type of a shot, with its name in the API.
type JobType string

// The job types.
const (
	TypeScreenshot JobType = "SCREENSHOT"
	TypePDF        JobType = "PDF_GENERATION"
)

// Queue is the queue of shots, and QueueHooks that of webhooks: a slow receiver delays no shot.
const (
	Queue      = "shots"
	QueueHooks = "webhooks"
)

// A Request is what a shot consists of; it is the arguments of its job.
type Request struct {
	Options shot.Options `json:"options"`
	By      string       `json:"by"`                // who asked for it
	User    string       `json:"user"`              // id of the user
	Cost    int64        `json:"cost"`              // credits
	Webhook string       `json:"webhook,omitempty"` // is called when it has ended
	Cache   string       `json:"cache,omitempty"`   // digest of the options, if the picture may answer later requests for the same
}

// A Screenshot is the job that makes a picture.
type Screenshot struct{ Request }

// Kind returns the kind of the job.
func (Screenshot) Kind() string { return "screenshot" }

// A PDF is the job that makes a PDF.
type PDF struct{ Request }

// Kind returns the kind of the job.
func (PDF) Kind() string { return "pdf_generation" }

// kindOf returns the kind of a job type.
func kindOf(t JobType) string { return strings.ToLower(string(t)) }

// typeOf returns the type of a request.
func typeOf(o shot.Options) JobType {
	if o.Format == shot.PDF {
		return TypePDF
	}
	return TypeScreenshot
}

// costs are the credits of each type.
var costs = map[JobType]int64{TypeScreenshot: 1, TypePDF: 1}

// args returns the request as arguments of its kind.
func (r Request) args() holdfast.Args {
	if typeOf(r.Options) == TypePDF {
		return PDF{r}
	}
	return Screenshot{r}
}

// A Stored is the result of a shot: the picture in the bucket.
type Stored struct {
	Key    string      `json:"key"`
	Format shot.Format `json:"format"`
	shot.Facts
}

// The states of a shot in the API.
const (
	Queued     = "QUEUED"
	Processing = "PROCESSING"
	Completed  = "COMPLETED"
	Failed     = "FAILED"
	Cancelled  = "CANCELLED"
)

var statusOf = map[holdfast.State]string{
	holdfast.Queued: Queued, holdfast.Processing: Processing, holdfast.Complete: Completed, holdfast.Failed: Failed, holdfast.Cancelled: Cancelled,
}

// stateOf returns the state with a name in the API, and an empty one for an unknown name.
func stateOf(status string) holdfast.State {
	for state, name := range statusOf {
		if name == strings.ToUpper(status) {
			return state
		}
	}
	return ""
}

// A Job is a shot as clients see it.
type Job struct {
	ID                holdfast.ID  `json:"jobId"`
	Type              JobType      `json:"jobType"`
	Status            string       `json:"status"`
	URL               string       `json:"url,omitempty"`
	Options           shot.Options `json:"options"`
	CreatedAt         time.Time    `json:"createdAt"`
	UpdatedAt         time.Time    `json:"updatedAt"`
	RequestedBy       string       `json:"requestedBy"`
	Credits           int64        `json:"credits"`
	RetryCount        int          `json:"retryCount"`
	MaxRetries        int          `json:"maxRetries"`
	NextRetryAt       *time.Time   `json:"nextRetryAt"`
	LastFailureReason *string      `json:"lastFailureReason"`
	ErrorCode         *string      `json:"errorCode"`
	IsRetryable       bool         `json:"isRetryable"`
	RetryType         string       `json:"retryType"` // AUTOMATIC or MANUAL: of the retry that runs or ran last
	LockedBy          *string      `json:"lockedBy"`
	LockedAt          *time.Time   `json:"lockedAt"`
	QueuePosition     *int         `json:"queuePosition"`
	Cached            bool         `json:"cached,omitempty"`
	Result            *Result      `json:"result"`

	// For pages.
	Owner      string    `json:"-"`
	User       string    `json:"-"`
	Generation int       `json:"-"`
	Refusal    string    `json:"-"` // why a manual retry is not possible now; empty: it is
	Stuck      bool      `json:"-"`
	Stored     *Stored   `json:"-"`
	Code       string    `json:"-"`
	AsOf       time.Time `json:"-"`
	Webhook    string    `json:"-"`
}

// A Result is a picture that was made.
type Result struct {
	URL       string      `json:"url"` // valid until ExpiresAt, without an API key
	ExpiresAt time.Time   `json:"expiresAt"`
	Format    shot.Format `json:"format"`
	shot.Facts
}

// requestOf returns the request of a job.
func requestOf(job *holdfast.Job) (r Request, err error) {
	err = json.Unmarshal(job.Args, &r)
	return r, err
}

// view returns a job as clients see it, without its result and its place in the queue.
func (s *Service) view(job *holdfast.Job) (Job, error) {
	r, err := requestOf(job)
	if err != nil {
		return Job{}, &Error{Code: code.SystemStorage, Cause: err}
	}
	v := Job{
		ID: job.ID, Type: JobType(strings.ToUpper(job.Kind)), Status: statusOf[job.State], URL: publicURL(r.Options.URL), Options: r.Options.Public(), CreatedAt: job.CreatedAt.UTC(), UpdatedAt: updatedAt(job),
		RequestedBy: r.By, Credits: r.Cost, RetryCount: job.Failures + job.Crashes, MaxRetries: s.maxRetries(job), IsRetryable: true, RetryType: "AUTOMATIC",
		Owner: job.Owner, User: r.User, Generation: job.Generation, AsOf: job.AsOf, Webhook: r.Webhook,
	}
	if job.State == holdfast.Failed { // the failure that ended it is no retry
		v.RetryCount = max(0, v.RetryCount-1)
	}
	if job.Generation > 1 {
		v.RetryType = "MANUAL"
	}
	if f := job.LastFailure; f != nil {
		c := code.Of(f.Code)
		v.Code, v.IsRetryable = c.Name, c.Retryable
		reason := c.Message
		if f.Detail != "" && c.Name != code.SystemPanic && c.Name != code.SystemError && c.Name != code.SystemStorage {
			reason = strings.TrimSuffix(c.Message, ".") + ": " + strings.TrimSuffix(f.Detail, ".") + "."
		}
		v.LastFailureReason, v.ErrorCode = &reason, &v.Code
	}
	if job.State == holdfast.Queued && job.DueAt.After(job.AsOf) && v.RetryCount > 0 {
		at := job.DueAt.UTC()
		v.NextRetryAt = &at
	}
	if job.State == holdfast.Processing {
		worker, at := job.Worker, job.StartedAt.UTC()
		v.LockedBy, v.LockedAt = &worker, &at
		v.Stuck = !job.StartedAt.IsZero() && job.AsOf.Sub(job.StartedAt) > s.cfg.StuckAfter
	}
	if job.State == holdfast.Complete {
		v.Stored = new(Stored)
		if err := json.Unmarshal(job.Result, v.Stored); err != nil {
			return v, &Error{Code: code.SystemStorage, Cause: err}
		}
	}
	v.Refusal = refusal(&v)
	return v, nil
}

// refusal says why a shot cannot be retried by its user in its state; empty: it can.
func refusal(v *Job) string {
	switch {
	case v.Status == Failed, v.Stuck, v.NextRetryAt != nil:
		return ""
	case v.Status == Processing:
		return "Job is currently being processed by another worker"
	}
	return "Job must be in FAILED status or stuck (>30 min processing)"
}

func (s *Service) maxRetries(job *holdfast.Job) int {
	if job.MaxAttempts > 0 {
		return job.MaxAttempts - 1
	}
	return s.cfg.Retries.of(JobType(strings.ToUpper(job.Kind))).Max
}

func updatedAt(job *holdfast.Job) time.Time {
	at := job.CreatedAt
	for _, later := range []time.Time{job.StartedAt, job.FinishedAt} {
		if later.After(at) {
			at = later
		}
	}
	return at.UTC()
}

// publicURL returns an address without a password.
func publicURL(text string) string {
	if u, err := url.Parse(text); err == nil {
		return u.Redacted()
	}
	return text
}
