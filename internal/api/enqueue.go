package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// MostDrafts is the maximum number of drafts in one array. A stream of lines has no maximum.
const MostDrafts = 10_000

// EnqueueIn is the request to enqueue one job.
type EnqueueIn struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"Makes the call safe to repeat: the same key with the same draft returns the same job."`
	Traceparent    string `header:"traceparent" doc:"W3C trace context that attempts are linked to, unless the draft has its own."`
	Body           holdfast.Draft
}

// Narrow makes the owner the job's owner.
func (i *EnqueueIn) Narrow(owner string) error { return narrowDraft(&i.Body, owner) }

// Joins returns the group that the job becomes a member of.
func (i *EnqueueIn) Joins() []holdfast.ID { return joined([]holdfast.Draft{i.Body}) }

// Draft returns the draft to enqueue, completed from the headers.
func (i *EnqueueIn) Draft() (holdfast.Draft, error) {
	d := i.Body
	key := strings.TrimSpace(i.IdempotencyKey)
	if len(key) > 1 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if key != "" && d.IdempotencyKey != "" && key != d.IdempotencyKey {
		return d, Invalid("the header and the draft have different idempotency keys: give one")
	}
	if key != "" {
		d.IdempotencyKey = key
	}
	if d.Trace == "" {
		d.Trace = i.Traceparent
	}
	return d, nil
}

func narrowDraft(d *holdfast.Draft, owner string) error {
	if d.Owner != "" && d.Owner != owner {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "this key is bound to another owner than the job's: leave the owner out"}
	}
	if !d.ID.IsZero() {
		return ErrChosenID
	}
	if d.Dependency != "" {
		return errChosenDependency
	}
	d.Owner = owner
	return nil
}

// errChosenDependency refuses a dependency that a caller bound to an owner has chosen: failures of the owner's jobs could open a breaker that holds the jobs of
// other owners.
var errChosenDependency = &holdfast.Error{Err: holdfast.ErrInvalid, Message: "a key that is bound to an owner cannot choose the dependency of a job: leave it out, and the kind defines it"}

// ErrChosenID refuses an id that a caller bound to an owner has chosen: an answer that the id is taken would reveal a job of another owner.
var ErrChosenID = &holdfast.Error{Err: holdfast.ErrInvalid, Message: "a key that is bound to an owner cannot choose ids: leave the id out, and use an idempotency key to repeat a request safely"}

// joined returns the groups that drafts join. Neighbours with the same group count once.
func joined(drafts []holdfast.Draft) (groups []holdfast.ID) {
	for i := range drafts {
		if g := drafts[i].Group; !g.IsZero() && (len(groups) == 0 || groups[len(groups)-1] != g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// A Receipt acknowledges a draft: the job is durable.
type Receipt struct {
	ID       holdfast.ID `json:"id" doc:"Id of the job."`
	Existing bool        `json:"existing,omitempty" doc:"A job with the same unique or idempotency key exists. Nothing was added; id is that of the existing job."`
	Replaced bool        `json:"replaced,omitempty" doc:"The existing job has the content of the draft now, as the draft asked with replace."`
}

// Announce sets the Location header to the job.
func (r Receipt) Announce(h http.Header) { h.Set("Location", Prefix+"/jobs/"+r.ID.String()) }

// StatusCode is 201 for a new job and 200 for an existing one.
func (r Receipt) StatusCode() int {
	if r.Existing {
		return http.StatusOK
	}
	return http.StatusCreated
}

// BulkIn is the request to enqueue many jobs: an array, which is enqueued completely or not at all, or a stream of JSON lines, each of which is
// enqueued or refused on its own.
type BulkIn struct {
	Letter      bool   `query:"letter" doc:"Arguments may have the form {\"$text\": \"...\"}, which is JSON stored byte for byte. Used by the Go client."`
	Quiet       bool   `query:"quiet" doc:"With a stream: answer only the lines that were refused, and the sum at the end. For clients that do not read while they send."`
	Traceparent string `header:"traceparent" doc:"W3C trace context that attempts are linked to, for drafts without their own."`
	Body        []holdfast.Draft

	owner string
}

// Narrow makes the owner the owner of all drafts.
func (i *BulkIn) Narrow(owner string) error {
	i.owner = owner
	return nil
}

// Finish applies the parameters of the request to a draft.
func (i *BulkIn) Finish(d *holdfast.Draft) error {
	if i.Letter {
		d.Args = Unmark(d.Args)
	}
	if d.Trace == "" {
		d.Trace = i.Traceparent
	}
	if i.owner != "" {
		return narrowDraft(d, i.owner)
	}
	return nil
}

// BulkOut acknowledges drafts.
type BulkOut struct {
	Receipts []Receipt `json:"receipts" doc:"One receipt for each draft, in the same order."`
}

// A Line answers one line of a stream.
type Line struct {
	Line     int         `json:"line" doc:"Number of the line in the request, from 1."`
	ID       holdfast.ID `json:"id,omitzero" doc:"Id of the job. It is durable."`
	Existing bool        `json:"existing,omitempty" doc:"A job with the same unique or idempotency key exists; id is that of the existing job."`
	Replaced bool        `json:"replaced,omitempty" doc:"The existing job has the content of the line now, as the line asked with replace."`
	Problem  *Problem    `json:"problem,omitempty" doc:"What is wrong with the line. It was not enqueued."`
}

// Sum is the last line of the answer to a stream. If it is missing, the stream was broken off, and lines without an answer may not be enqueued.
type Sum struct {
	Lines    int `json:"lines" doc:"Lines that were read."`
	Enqueued int `json:"enqueued" doc:"New jobs. They are durable."`
	Existing int `json:"existing" doc:"Lines whose job already existed."`
	Refused  int `json:"refused" doc:"Lines that were not enqueued. Each has an answer of its own."`
}

// A NewGroup is the JSON form of a group to create.
type NewGroup struct {
	ID       holdfast.ID     `json:"id,omitzero" doc:"Id of the group; generated when left out."`
	Name     string          `json:"name,omitempty" doc:"Name for people."`
	Owner    string          `json:"owner,omitempty" doc:"Owner of the group."`
	Parent   holdfast.ID     `json:"parent,omitzero" doc:"Group that this group is a member of."`
	Quorum   int             `json:"quorum,omitempty" doc:"Number of complete members that makes the group ready although others are not; all members when left out."`
	ExpireIn time.Duration   `json:"expire_in,omitempty" doc:"Time until members that have not ended are cancelled."`
	ExpireAt time.Time       `json:"expire_at,omitzero" doc:"Instant at which members that have not ended are cancelled; instead of expire_in."`
	Then     []holdfast.Then `json:"then,omitempty" doc:"Jobs to enqueue when the group ends with a given outcome."`
}

// Group returns the group to create.
func (g NewGroup) Group() holdfast.Group {
	return holdfast.Group{ID: g.ID, Name: g.Name, Owner: g.Owner, Parent: g.Parent, Quorum: g.Quorum, ExpireIn: g.ExpireIn, ExpireAt: g.ExpireAt, Then: g.Then}
}

// NewGroupOf returns a group as a request has it.
func NewGroupOf(g holdfast.Group) NewGroup {
	return NewGroup{g.ID, g.Name, g.Owner, g.Parent, g.Quorum, g.ExpireIn, g.ExpireAt, g.Then}
}

// GatherIn is the request to create a group.
type GatherIn struct{ Body NewGroup }

// Narrow makes the owner the owner of the group and of the jobs that follow it.
func (i *GatherIn) Narrow(owner string) error {
	if i.Body.Owner != "" && i.Body.Owner != owner {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "this key is bound to another owner than the group's: leave the owner out"}
	}
	if !i.Body.ID.IsZero() {
		return ErrChosenID
	}
	i.Body.Owner = owner
	for n := range i.Body.Then {
		if err := narrowDraft(&i.Body.Then[n].Draft, owner); err != nil {
			return err
		}
	}
	return nil
}

// Joins returns the parent group.
func (i *GatherIn) Joins() []holdfast.ID {
	if i.Body.Parent.IsZero() {
		return nil
	}
	return []holdfast.ID{i.Body.Parent}
}

// The routes that add jobs and groups.
var (
	EnqueueJob  = Route[EnqueueIn, Receipt]{Name: "enqueue", Method: "POST", Path: "/jobs", Scope: apikey.Worker, Also: apikey.Operator, Tag: "jobs", Status: http.StatusCreated, About: "Enqueue a job. The job is durable when the answer arrives: 201 for a new job, 200 if a job with the same unique or idempotency key exists, or was replaced. Errors: idempotency_key_reused (the key was used for another draft), conflict (the id is taken, or the group is sealed), not_found (no such group), throttled (the owner is over its rate)."}
	EnqueueBulk = Route[BulkIn, BulkOut]{Name: "enqueue-bulk", Method: "POST", Path: "/jobs/bulk", Scope: apikey.Worker, Also: apikey.Operator, Tag: "jobs", Limit: WorkLimit, Long: true, About: "Enqueue many jobs. An array of at most 10000 drafts is enqueued completely or not at all. A body of application/x-ndjson is a stream of any length: each line is one draft, and the answer has one line for each. Errors: as for enqueue, for the whole array or for single lines."}
	GatherGroup = Route[GatherIn, holdfast.Group]{Name: "make-group", Method: "POST", Path: "/groups", Scope: apikey.Worker, Also: apikey.Operator, Tag: "groups", Status: http.StatusCreated, About: "Create a group. Drafts refer to it by its id; seal it when it has all its members. Errors: conflict (the id is taken, or the parent is sealed), not_found (no such parent)."}
	SealGroup   = Route[OnGroup, Nothing]{Name: "seal-group", Method: "POST", Path: "/groups/{id}/seal", Scope: apikey.Worker, Also: apikey.Operator, Tag: "groups", About: "Seal a group. It has all its members and can end. Errors: not_found (no such group)."}
)
