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
)

// A Desk is everything that an operator can ask and do. Service implements it on a store, and the client of package api
// through a server; callers cannot distinguish the two. It is composed of interfaces by topic: ask for the one that is
// needed. The methods are documented at Service.
type Desk interface {
	Looking
	Figuring
	Intervening
	Holding
	Breaking
	Redriving
	Triaging
	Grouping
	Telling
	Subscribing
	Delivering
	Scheduling
	Keeping
	Performing
	Ruling
	Locking
}

// Looking reads jobs.
type Looking interface {
	Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error)
	Jobs(ctx context.Context, f holdfast.Filter) (jobs []holdfast.Job, cursor string, err error)
	DeadLetters(ctx context.Context, f holdfast.Filter) (letters []DeadLetter, cursor string, err error)
	History(ctx context.Context, id holdfast.ID) (holdfast.History, error)
	Story(ctx context.Context, id holdfast.ID) ([]Line, error)
	Explain(ctx context.Context, id holdfast.ID) (Explanation, error)
	Artifacts(ctx context.Context, job holdfast.ID) ([]holdfast.Artifact, error)
}

// Figuring reads counts, trends and the state of the store.
type Figuring interface {
	Stats(ctx context.Context) (Stats, error)
	Count(ctx context.Context, f holdfast.Filter) (int, error)
	Depths(ctx context.Context) ([]holdfast.Depth, error)
	Trends(ctx context.Context, within, step time.Duration) ([]holdfast.Trend, error)
	Workers(ctx context.Context) ([]holdfast.Presence, error)
	Analytics(ctx context.Context, within time.Duration) (Analytics, error)
	Doctor(ctx context.Context) (Report, error)
}

// Intervening changes one job.
type Intervening interface {
	Retry(ctx context.Context, i holdfast.Intervention) (ahead int, err error)
	Cancel(ctx context.Context, i holdfast.Intervention) (holdfast.State, error)
	Discard(ctx context.Context, i holdfast.Intervention) error
	Edit(ctx context.Context, e holdfast.Edit) (holdfast.Job, error)
}

// Holding places and lifts holds, and sets the shares of owners.
type Holding interface {
	Holds(ctx context.Context) ([]Held, error)
	Pause(ctx context.Context, h holdfast.Hold) error
	Resume(ctx context.Context, h holdfast.Hold) error
	Shares(ctx context.Context) ([]Share, error)
	SetShare(ctx context.Context, share Share, by By) error
}

// Breaking reads and changes breakers.
type Breaking interface {
	Breakers(ctx context.Context) ([]Breaker, error)
	Breaker(ctx context.Context, dependency string) (Breaker, error)
	OpenBreaker(ctx context.Context, dependency string, by By) error
	CloseBreaker(ctx context.Context, dependency string, by By) error
	ForceBreaker(ctx context.Context, dependency string, open bool, by By) error
	AutoBreaker(ctx context.Context, dependency string, by By) error
}

// Redriving starts and controls redrives.
type Redriving interface {
	PreviewRedrive(ctx context.Context, o redrive.Order) (Preview, error)
	StartRedrive(ctx context.Context, o redrive.Order) (holdfast.ID, error)
	Redrives(ctx context.Context) ([]redrive.Progress, error)
	Redrive(ctx context.Context, id holdfast.ID) (Redrive, error)
	PauseRedrive(ctx context.Context, id holdfast.ID, by By) error
	ResumeRedrive(ctx context.Context, id holdfast.ID, by By) error
	CancelRedrive(ctx context.Context, id holdfast.ID, by By) error
}

// Triaging reads error groups and changes their status.
type Triaging interface {
	ErrorGroups(ctx context.Context, f holdfast.ErrorFilter) (groups []holdfast.ErrorGroup, cursor string, err error)
	ErrorGroup(ctx context.Context, fingerprint string) (Trouble, error)
	ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]holdfast.ErrorTrend, error)
	Triage(ctx context.Context, t holdfast.Triage) error
}

// Grouping reads and changes groups.
type Grouping interface {
	Groups(ctx context.Context, f holdfast.GroupFilter) (groups []holdfast.Group, cursor string, err error)
	Group(ctx context.Context, id holdfast.ID) (Gathering, error)
	SealGroup(ctx context.Context, i holdfast.Intervention) error
	RetryGroup(ctx context.Context, i holdfast.Intervention) (int, error)
	CancelGroup(ctx context.Context, i holdfast.Intervention) error
}

// Telling reads the feed and the audit log.
type Telling interface {
	Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error)
	Latest(ctx context.Context, limit int) (holdfast.Feed, error)
	Tail(ctx context.Context, after int64) iter.Seq2[holdfast.Feed, error]
	Trail(ctx context.Context, f AuditFilter) (Trail, error)
}

// Subscribing reads and changes subscriptions.
type Subscribing interface {
	Subscriptions(ctx context.Context) ([]Subscribed, error)
	Subscription(ctx context.Context, id holdfast.ID) (Subscribed, error)
	Subscribe(ctx context.Context, sub subscription.Subscription, by By) (subscription.Subscription, error)
	Unsubscribe(ctx context.Context, id holdfast.ID, by By) error
	EnableSubscription(ctx context.Context, id holdfast.ID, by By) error
	DisableSubscription(ctx context.Context, id holdfast.ID, by By) error
	RewindSubscription(ctx context.Context, id holdfast.ID, after int64, by By) error
}

// Delivering reads deliveries and sends them again.
type Delivering interface {
	Deliveries(ctx context.Context, of holdfast.ID, f holdfast.Filter) (jobs []holdfast.Job, cursor string, err error)
	Delivery(ctx context.Context, id holdfast.ID) (Delivery, error)
	Resend(ctx context.Context, i holdfast.Intervention) (holdfast.ID, error)
}

// Scheduling reads and changes schedules.
type Scheduling interface {
	Schedules(ctx context.Context, next int) ([]Scheduled, error)
	Schedule(ctx context.Context, name string, next int) (Scheduled, error)
	SetSchedule(ctx context.Context, plan schedule.Schedule, by By) (Scheduled, error)
	RemoveSchedule(ctx context.Context, name string, by By) error
	PauseSchedule(ctx context.Context, name string, lasting time.Duration, by By) error
	ResumeSchedule(ctx context.Context, name string, by By) error
	RunSchedule(ctx context.Context, name string, by By) error
}

// Keeping reads and changes retention.
type Keeping interface {
	Retention(ctx context.Context) (Retention, error)
	ApplyRetention(ctx context.Context, rules []holdfast.Retain, by By) error
	Tombstones(ctx context.Context, f holdfast.TombstoneFilter) (stones []holdfast.Tombstone, cursor string, err error)
}

// Performing reads and controls duties.
type Performing interface {
	Duties(ctx context.Context) ([]duty.Standing, error)
	PauseDuty(ctx context.Context, name string, lasting time.Duration, by By) error
	ResumeDuty(ctx context.Context, name string, by By) error
	RunDuty(ctx context.Context, name string, by By) error
}

// Ruling reads and changes the applied policy, and lists failure codes.
type Ruling interface {
	Policy(ctx context.Context) (Policy, error)
	ApplyPolicy(ctx context.Context, o PolicyOrder, by By) (Policy, error)
	RemovePolicy(ctx context.Context, version int, by By) error
	ExplainPolicy(ctx context.Context, q PolicyQuestion) (policy.Explanation, error)
	Codes(ctx context.Context) ([]catalog.Entry, error)
}

// Locking creates and revokes API keys.
type Locking interface {
	Keys(ctx context.Context) ([]apikey.Key, error)
	MakeKey(ctx context.Context, o apikey.Order, by By) (k apikey.Key, text string, err error)
	RevokeKey(ctx context.Context, id string, by By) error
}
