package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// MostDrafts is how many drafts one array may hold. A stream of lines may be as long as it likes.
const MostDrafts = 10_000

// EnqueueIn brings one draft.
type EnqueueIn struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"makes it safe to repeat the call: the same key with the same draft is answered with the same job"`
	Traceparent    string `header:"traceparent" doc:"the W3C trace that attempts are linked to, unless the draft names one"`
	Body           holdfast.Draft
}

// Narrow makes the job the owner's.
func (i *EnqueueIn) Narrow(owner string) error { return narrowDraft(&i.Body, owner) }

// Joins names the group that the job becomes a member of.
func (i *EnqueueIn) Joins() []holdfast.ID { return joined([]holdfast.Draft{i.Body}) }

// Draft is what is to be enqueued, with what the headers say.
func (i *EnqueueIn) Draft() (holdfast.Draft, error) {
	d := i.Body
	said := strings.TrimSpace(i.IdempotencyKey)
	if len(said) > 1 && said[0] == '"' && said[len(said)-1] == '"' {
		said = said[1 : len(said)-1]
	}
	if said != "" && d.IdempotencyKey != "" && said != d.IdempotencyKey {
		return d, invalid("the header and the draft give two idempotency keys: give one")
	}
	if said != "" {
		d.IdempotencyKey = said
	}
	if d.Trace == "" {
		d.Trace = i.Traceparent
	}
	return d, nil
}

func narrowDraft(d *holdfast.Draft, owner string) error {
	if d.Owner != "" && d.Owner != owner {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "a job for another owner than the one this key is bound to: leave the owner out"}
	}
	if !d.ID.IsZero() {
		return errChosenID
	}
	d.Owner = owner
	return nil
}

// errChosenID refuses the id that a caller bound to an owner chose: whether it is taken would tell what others have.
var errChosenID = &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "a key that is bound to an owner cannot choose ids: leave the id out, and use an idempotency key to repeat a request safely"}

// joined names the groups that drafts join, each once when they stand together.
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
	ID       holdfast.ID `json:"id" doc:"the job"`
	Existing bool        `json:"existing,omitempty" doc:"the draft met a twin, by its unique or idempotency key: nothing was added, and this is the twin"`
}

// Announce says where the job is.
func (r Receipt) Announce(h http.Header) { h.Set("Location", Prefix+"/jobs/"+r.ID.String()) }

// StatusCode tells a new job from one that was there.
func (r Receipt) StatusCode() int {
	if r.Existing {
		return http.StatusOK
	}
	return http.StatusCreated
}

// BulkIn brings many drafts: as an array, all or none; or as lines of JSON, each for itself.
type BulkIn struct {
	Letter      bool   `query:"letter" doc:"arguments of the form {\"$text\": ...} are JSON to the letter; for Go programs"`
	Quiet       bool   `query:"quiet" doc:"with a stream: answer only for lines that were refused, and with the sum at the end. For clients that do not read while they send"`
	Traceparent string `header:"traceparent" doc:"the W3C trace that attempts are linked to, of drafts that name none"`
	Body        []holdfast.Draft

	owner string
}

// Narrow makes all of them the owner's.
func (i *BulkIn) Narrow(owner string) error {
	i.owner = owner
	return nil
}

// Finish puts into a draft what is said for all of them.
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

// BulkOut acknowledges drafts, in order.
type BulkOut struct {
	Receipts []Receipt `json:"receipts" doc:"in the order of the drafts"`
}

// A Line answers one line of a stream.
type Line struct {
	Line     int         `json:"line" doc:"which one, from 1"`
	ID       holdfast.ID `json:"id,omitzero" doc:"the job: it is durable"`
	Existing bool        `json:"existing,omitempty" doc:"it was there before"`
	Problem  *Problem    `json:"problem,omitempty" doc:"what is wrong with the line: it was not enqueued"`
}

// Sum ends the answer to a stream. Without it the stream was broken off, and what has no line of its own may not be enqueued.
type Sum struct {
	Lines    int `json:"lines" doc:"so many were read"`
	Enqueued int `json:"enqueued" doc:"so many are new and durable"`
	Existing int `json:"existing" doc:"so many met a twin"`
	Refused  int `json:"refused" doc:"so many were not enqueued; each has a line of its own"`
}

// A NewGroup is a group that is to be made.
type NewGroup struct {
	ID       holdfast.ID     `json:"id,omitzero" doc:"names it; made when left out"`
	Name     string          `json:"name,omitempty" doc:"for people"`
	Owner    string          `json:"owner,omitempty" doc:"whose it is"`
	Parent   holdfast.ID     `json:"parent,omitzero" doc:"the group it is a member of"`
	Quorum   int             `json:"quorum,omitempty" doc:"so many complete members make it ready although others are not; all when left out"`
	ExpireIn time.Duration   `json:"expire_in,omitempty" doc:"members that have not ended by then are cancelled"`
	ExpireAt time.Time       `json:"expire_at,omitzero" doc:"or by this instant"`
	Then     []holdfast.Then `json:"then,omitempty" doc:"jobs that follow an outcome"`
}

// Group is what is to be made.
func (g NewGroup) Group() holdfast.Group {
	return holdfast.Group{ID: g.ID, Name: g.Name, Owner: g.Owner, Parent: g.Parent, Quorum: g.Quorum, ExpireIn: g.ExpireIn, ExpireAt: g.ExpireAt, Then: g.Then}
}

func newGroupOf(g holdfast.Group) NewGroup {
	return NewGroup{g.ID, g.Name, g.Owner, g.Parent, g.Quorum, g.ExpireIn, g.ExpireAt, g.Then}
}

// GatherIn makes a group.
type GatherIn struct{ Body NewGroup }

// Narrow makes the group, and what continues it, the owner's.
func (i *GatherIn) Narrow(owner string) error {
	if i.Body.Owner != "" && i.Body.Owner != owner {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "a group for another owner than the one this key is bound to: leave the owner out"}
	}
	if !i.Body.ID.IsZero() {
		return errChosenID
	}
	i.Body.Owner = owner
	for n := range i.Body.Then {
		if err := narrowDraft(&i.Body.Then[n].Draft, owner); err != nil {
			return err
		}
	}
	return nil
}

// Joins names the group it goes into.
func (i *GatherIn) Joins() []holdfast.ID {
	if i.Body.Parent.IsZero() {
		return nil
	}
	return []holdfast.ID{i.Body.Parent}
}

// The routes by which work comes in.
var (
	EnqueueJob  = Route[EnqueueIn, Receipt]{Name: "enqueue", Method: "POST", Path: "/jobs", Scope: apikey.Worker, Also: apikey.Operator, Tag: "jobs", Status: http.StatusCreated, About: "Enqueue a job. The answer says that it is durable: 201, or 200 when it met a twin."}
	EnqueueBulk = Route[BulkIn, BulkOut]{Name: "enqueue-bulk", Method: "POST", Path: "/jobs/bulk", Scope: apikey.Worker, Also: apikey.Operator, Tag: "jobs", Limit: WorkLimit, Long: true, About: "Enqueue many jobs: an array of at most 10000, all or none; or, as application/x-ndjson, a stream of any length, line by line, answered line by line."}
	GatherGroup = Route[GatherIn, holdfast.Group]{Name: "make-group", Method: "POST", Path: "/groups", Scope: apikey.Worker, Also: apikey.Operator, Tag: "groups", Status: http.StatusCreated, About: "Make a group, so that drafts may name it. Seal it when it has all its members."}
	SealGroup   = Route[OnGroup, Nothing]{Name: "seal-group", Method: "POST", Path: "/groups/{id}/seal", Scope: apikey.Worker, Also: apikey.Operator, Tag: "groups", About: "Say that a group has all its members."}
)
