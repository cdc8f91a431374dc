package deadletter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter/pb"
	"github.com/holdfastdev/holdfast/store"
)

// EventPublished is the name of the event in the story of a resource that says that its dead letter is in the stream. The event's Request is the sequence number.
const EventPublished = "dead letter"

// MetadataHost is the key of the resource's host in the metadata of a dead letter.
const MetadataHost = "host"

const (
	namespace = "fetchbox-dlq"
	recordAt  = "position"
	actor     = "fetchbox"
	feedPage  = 500
	moveAfter = 5000 // events without a dead letter after which the position is saved all the same
)

// A Store is the part of a store that the outbox uses.
type Store interface {
	Feed(ctx context.Context, after int64, limit int) (store.Feed, error)
	History(ctx context.Context, id holdfast.ID) (store.History, error)
	Records(ctx context.Context, namespace string) ([]store.Record, error)
	Apply(ctx context.Context, c store.Change) error
}

// An Outbox publishes the dead letters of one kind of job. Several processes may run one on the same store and stream: compare-and-set of the position decides which
// of them records a message.
type Outbox struct {
	Store  Store
	Stream *Stream
	Kind   string // of the jobs whose failures are dead letters
	// Published is called for each dead letter that this process published, after that was recorded.
	Published func(code string)

	behind atomic.Int64
}

// position is the body of the outbox's record.
type position struct {
	After   int64     `json:"after"`   // number of the last event of the feed that was handled
	Last    uint64    `json:"last"`    // sequence number of the last dead letter that was published
	Created time.Time `json:"created"` // of the stream
}

// Behind returns how many events of the feed were not handled yet at the last step.
func (o *Outbox) Behind() int64 { return o.behind.Load() }

// Step publishes the dead letters since the last step. It returns an error if the stream or the store cannot be used; the next step continues where it stopped.
func (o *Outbox) Step(ctx context.Context) error {
	record, at, err := o.position(ctx)
	if err != nil {
		return err
	}
	stream, err := o.Stream.Position(ctx)
	if err != nil {
		o.measure(ctx, at.After)
		return err
	}
	if !stream.Created.Equal(at.Created) { // the first step, or the stream was deleted: all that the feed has is published in it
		at = position{Created: stream.Created, Last: stream.Last}
	}
	from := at.After
	for {
		feed, err := o.Store.Feed(ctx, at.After, feedPage)
		if err != nil {
			return err
		}
		o.behind.Store(feed.Head - at.After)
		for i := range feed.Events {
			event := &feed.Events[i]
			if event.Kind != o.Kind || event.Name != store.EventFailed || event.Job.IsZero() {
				continue
			}
			at.After = event.Seq
			if err := o.publish(ctx, &record, &at, event); err != nil {
				return err
			}
			from = at.After
		}
		at.After = feed.Next
		if len(feed.Events) == 0 || feed.Next >= feed.Head {
			o.behind.Store(0)
			if at.After-from < moveAfter && !record.KeptAt.IsZero() {
				return nil
			}
		}
		if err := o.save(ctx, &record, at, nil); err != nil {
			return err
		}
		if from = at.After; o.Behind() == 0 {
			return nil
		}
	}
}

func (o *Outbox) measure(ctx context.Context, after int64) {
	if feed, err := o.Store.Feed(ctx, after, 1); err == nil {
		o.behind.Store(feed.Head - after)
	}
}

func (o *Outbox) position(ctx context.Context) (record store.Record, at position, err error) {
	record = store.Record{Namespace: namespace, Name: recordAt}
	records, err := o.Store.Records(ctx, namespace)
	if err != nil {
		return record, at, err
	}
	for _, r := range records {
		if r.Name == recordAt {
			record = r
			if err := json.Unmarshal(r.Body, &at); err != nil {
				return record, at, fmt.Errorf("the position of the dead letters cannot be read: %w", err)
			}
		}
	}
	return record, at, nil
}

// publish publishes the dead letter of an event, and records its sequence number together with the position.
func (o *Outbox) publish(ctx context.Context, record *store.Record, at *position, event *store.Event) error {
	letter, err := o.letter(ctx, event)
	if err != nil {
		return err
	}
	id := event.Job.String() + "/" + strconv.Itoa(event.Generation)
	seq, err := o.Stream.publish(ctx, id, letter, at.Last)
	if errors.Is(err, errOther) { // another process was faster: if it is one of ours, its position is in the store or will be
		now, position := o.Stream.Position(ctx)
		if position != nil {
			return position
		}
		at.Last = now.Last
		seq, err = o.Stream.publish(ctx, id, letter, at.Last)
	}
	if err != nil {
		return err
	}
	at.Last = max(at.Last, seq)
	text := strconv.FormatUint(seq, 10)
	told := store.Event{Job: event.Job, Name: EventPublished, Actor: actor, Reason: "published on " + Subject + " as " + text, Request: text}
	err = o.save(ctx, record, *at, []store.Event{told})
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) { // retention deleted the resource, and its story with it
		err = o.save(ctx, record, *at, nil)
	}
	if err == nil && o.Published != nil {
		o.Published(letter.GetFailureCode())
	}
	return err
}

func (o *Outbox) save(ctx context.Context, record *store.Record, at position, events []store.Event) error {
	body, err := json.Marshal(at)
	if err != nil {
		return err
	}
	next := *record
	next.Body = body
	if err := o.Store.Apply(ctx, store.Change{Records: []store.Record{next}, Events: events}); err != nil {
		return err
	}
	next.Version++
	next.KeptAt = time.Now()
	*record = next
	return nil
}

// letter returns the dead letter of an event. Its content depends only on what the store has of the event and of the task, so it is the same whenever it is made.
func (o *Outbox) letter(ctx context.Context, event *store.Event) (*pb.DeadLetterTask, error) {
	history, err := o.Store.History(ctx, event.Job)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) && !errors.Is(err, holdfast.ErrPurged) {
		return nil, err
	}
	message, metadata := event.Message, map[string]string{}
	maps.Copy(metadata, event.Context)
	for _, attempt := range history.Attempts {
		if attempt.Token == event.Token && !attempt.Late && attempt.Failure != nil {
			message = cmp.Or(attempt.Failure.Detail, attempt.Failure.Message)
			maps.Copy(metadata, attempt.Failure.Context)
		}
	}
	task, host := publicTask(history.Job.Args)
	if host != "" {
		metadata[MetadataHost] = host
	}
	return &pb.DeadLetterTask{
		FailureCode: event.Code, FailureMessage: strings.ToValidUTF8(message, "?"), Attempts: uint32(max(event.Attempt, 0)), FailedAtMs: event.At.UnixMilli(), Metadata: metadata,
		TaskId: event.Job.String(), JobId: event.Group.String(), Owner: event.Owner, Generation: uint32(max(event.Generation, 0)), Task: task,
	}, nil
}

// publicTask returns the arguments of a resource without the values of its headers, which may be credentials, and the host of its address.
func publicTask(args json.RawMessage) (task []byte, host string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil {
		return nil, ""
	}
	var address string
	if json.Unmarshal(fields["url"], &address) == nil {
		if u, err := url.Parse(address); err == nil {
			host = strings.ToLower(u.Hostname())
			fields["url"], _ = json.Marshal(u.Redacted()) // text always marshals
		}
	}
	var headers map[string]string
	if json.Unmarshal(fields["headers"], &headers) == nil && len(headers) > 0 {
		for name := range headers {
			headers[name] = ""
		}
		fields["headers"], _ = json.Marshal(headers)
	}
	task, _ = json.Marshal(fields) // with its keys in order
	return task, host
}
