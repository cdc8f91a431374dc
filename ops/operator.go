package ops

import (
	"context"
	"iter"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

// An Operator is everything that a person who operates jobs can ask and do. Service implements it on a store, and package client
// through a server; callers cannot distinguish the two. It is composed of interfaces by topic: ask for the one that is
// needed. The methods are documented at Service.
type Operator interface {
	Jobs
	Statistics
	Holds
	Redrives
	Errors
	Groups
	Events
	Subscriptions
	Schedules
	Maintenance
	Policies
	Keys
}

// Jobs reads and changes single jobs.
type Jobs interface {
	Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error)
	Jobs(ctx context.Context, f store.Filter) (jobs []holdfast.Job, cursor string, err error)
	DeadLetters(ctx context.Context, f store.Filter) (letters []DeadLetter, cursor string, err error)
	History(ctx context.Context, id holdfast.ID) (store.History, error)
	Story(ctx context.Context, id holdfast.ID) ([]StoryLine, error)
	Explain(ctx context.Context, id holdfast.ID) (Explanation, error)
	Artifacts(ctx context.Context, job holdfast.ID) ([]store.Artifact, error)

	Retry(ctx context.Context, i store.Intervention) (ahead int, err error)
	Cancel(ctx context.Context, i store.Intervention) (holdfast.State, error)
	Discard(ctx context.Context, i store.Intervention) error
	Edit(ctx context.Context, e store.Edit) (holdfast.Job, error)
}

// Statistics reads counts, trends and the state of the store.
type Statistics interface {
	Stats(ctx context.Context) (Stats, error)
	Count(ctx context.Context, f store.Filter) (int, error)
	Depths(ctx context.Context) ([]store.Depth, error)
	Trends(ctx context.Context, within, step time.Duration) ([]store.Trend, error)
	Workers(ctx context.Context) ([]store.WorkerInfo, error)
	Analytics(ctx context.Context, within time.Duration) (Analytics, error)
	CheckIntegrity(ctx context.Context) (IntegrityReport, error)
}

// Holds places and lifts holds, sets the shares of owners, and reads and changes breakers.
type Holds interface {
	Holds(ctx context.Context) ([]HoldStatus, error)
	HeldLines(ctx context.Context) (lines []store.HeldLine, more bool, err error)
	Pause(ctx context.Context, h store.Hold) error
	Resume(ctx context.Context, h store.Hold) error
	Shares(ctx context.Context) ([]Share, error)
	SetShare(ctx context.Context, share Share, by Actor) error

	Breakers(ctx context.Context) ([]Breaker, error)
	Breaker(ctx context.Context, dependency string) (Breaker, error)
	OpenBreaker(ctx context.Context, dependency string, by Actor) error
	CloseBreaker(ctx context.Context, dependency string, by Actor) error
	ForceBreaker(ctx context.Context, dependency string, open bool, by Actor) error
	AutoBreaker(ctx context.Context, dependency string, by Actor) error
}

// Redrives starts and controls redrives.
type Redrives interface {
	PreviewRedrive(ctx context.Context, o redrive.Spec) (Preview, error)
	StartRedrive(ctx context.Context, o redrive.Spec) (holdfast.ID, error)
	Redrives(ctx context.Context) ([]redrive.Progress, error)
	Redrive(ctx context.Context, id holdfast.ID) (Redrive, error)
	PauseRedrive(ctx context.Context, id holdfast.ID, by Actor) error
	ResumeRedrive(ctx context.Context, id holdfast.ID, by Actor) error
	CancelRedrive(ctx context.Context, id holdfast.ID, by Actor) error
}

// Errors reads error groups and changes their status.
type Errors interface {
	ErrorGroups(ctx context.Context, f store.ErrorFilter) (groups []store.ErrorGroup, cursor string, err error)
	ErrorGroup(ctx context.Context, fingerprint string) (ErrorGroupDetail, error)
	ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]store.ErrorTrend, error)
	Triage(ctx context.Context, t store.Triage) error
}

// Groups reads and changes groups.
type Groups interface {
	Groups(ctx context.Context, f store.GroupFilter) (groups []holdfast.Group, cursor string, err error)
	Group(ctx context.Context, id holdfast.ID) (GroupDetail, error)
	GroupGraph(ctx context.Context, id holdfast.ID) (Graph, error)
	SealGroup(ctx context.Context, i store.Intervention) error
	RetryGroup(ctx context.Context, i store.Intervention) (int, error)
	CancelGroup(ctx context.Context, i store.Intervention) error
}

// Events reads the feed and the audit log.
type Events interface {
	Feed(ctx context.Context, after int64, limit int) (store.Feed, error)
	LatestEvents(ctx context.Context, limit int) (store.Feed, error)
	Tail(ctx context.Context, after int64) iter.Seq2[store.Feed, error]
	AuditLog(ctx context.Context, f AuditFilter) (AuditLog, error)
}

// Subscriptions reads and changes subscriptions, and sends deliveries again.
type Subscriptions interface {
	Subscriptions(ctx context.Context) ([]SubscriptionStatus, error)
	Subscription(ctx context.Context, id holdfast.ID) (SubscriptionStatus, error)
	Subscribe(ctx context.Context, sub subscription.Subscription, by Actor) (subscription.Subscription, error)
	Unsubscribe(ctx context.Context, id holdfast.ID, by Actor) error
	EnableSubscription(ctx context.Context, id holdfast.ID, by Actor) error
	DisableSubscription(ctx context.Context, id holdfast.ID, by Actor) error
	RewindSubscription(ctx context.Context, id holdfast.ID, after int64, by Actor) error

	Deliveries(ctx context.Context, of holdfast.ID, f store.Filter) (jobs []holdfast.Job, cursor string, err error)
	Delivery(ctx context.Context, id holdfast.ID) (Delivery, error)
	Resend(ctx context.Context, i store.Intervention) (holdfast.ID, error)
}

// Schedules reads and changes schedules.
type Schedules interface {
	Schedules(ctx context.Context, next int) ([]ScheduleStatus, error)
	Schedule(ctx context.Context, name string, next int) (ScheduleStatus, error)
	SetSchedule(ctx context.Context, plan schedule.Schedule, by Actor) (ScheduleStatus, error)
	RemoveSchedule(ctx context.Context, name string, by Actor) error
	PauseSchedule(ctx context.Context, name string, lasting time.Duration, by Actor) error
	ResumeSchedule(ctx context.Context, name string, by Actor) error
	RunSchedule(ctx context.Context, name string, by Actor) error
}

// Maintenance reads and changes retention, and controls duties.
type Maintenance interface {
	Retention(ctx context.Context) (Retention, error)
	ApplyRetention(ctx context.Context, rules []store.RetentionRule, by Actor) error
	Tombstones(ctx context.Context, f store.TombstoneFilter) (stones []store.Tombstone, cursor string, err error)

	Duties(ctx context.Context) ([]duty.Status, error)
	PauseDuty(ctx context.Context, name string, lasting time.Duration, by Actor) error
	ResumeDuty(ctx context.Context, name string, by Actor) error
	RunDuty(ctx context.Context, name string, by Actor) error
}

// Policies reads and changes the applied policy, and lists failure codes.
type Policies interface {
	Policy(ctx context.Context) (Policy, error)
	ApplyPolicy(ctx context.Context, o PolicyRequest, by Actor) (Policy, error)
	RemovePolicy(ctx context.Context, version int, by Actor) error
	ExplainPolicy(ctx context.Context, q PolicyQuestion) (policy.Explanation, error)
	Codes(ctx context.Context) ([]catalog.Entry, error)
}

// Keys creates and revokes API keys.
type Keys interface {
	Keys(ctx context.Context) ([]apikey.Key, error)
	CreateKey(ctx context.Context, o apikey.Request, by Actor) (k apikey.Key, text string, err error)
	RevokeKey(ctx context.Context, id string, by Actor) error
}
