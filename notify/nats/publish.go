package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// A Receipt says where the events are stored.
type Receipt struct {
	Stream string `json:"stream"`
	Events int    `json:"events"`
	Twins  int    `json:"twins,omitempty"` // events that the stream already had
	First  uint64 `json:"first"`           // stream sequence numbers of the first and the last event
	Last   uint64 `json:"last"`
}

// Deliver publishes the events in order without waiting for each, and then waits until the stream has confirmed all of them.
func (s *Sink) Deliver(all context.Context, d notify.Delivery) (any, error) {
	// A little less than the time that the engine allows, so that the error names the servers and not the job.
	ctx, cancel := context.WithTimeout(all, s.cfg.Timeout-s.cfg.Timeout/10)
	defer cancel()
	at := s.destinationOf(d.Subscription)
	js, err := s.connected()
	if err != nil {
		return nil, classify(all, fmt.Errorf("the NATS servers at %s cannot be reached: %w", s.host, err))
	}
	if err := s.ensure(ctx, js, at); err != nil {
		return nil, classify(all, err)
	}
	receipt, err := publish(ctx, js, at, d)
	if err != nil {
		s.forget(at)
		return nil, classify(all, err)
	}
	return receipt, nil
}

func publish(ctx context.Context, js jetstream.JetStream, at destination, d notify.Delivery) (Receipt, error) {
	var promises []jetstream.PubAckFuture
	for _, e := range d.Events {
		m, err := message(d.Source, at.subject, e)
		if err != nil {
			return Receipt{}, err
		}
		// The client must not retry by itself: the event would arrive after those that follow it.
		options := []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
		if at.stream != "" {
			options = append(options, jetstream.WithExpectStream(at.stream))
		}
		promise, err := js.PublishMsgAsync(m, options...)
		if err != nil {
			return Receipt{}, fmt.Errorf("event %d cannot be published: %w", e.Seq, err)
		}
		promises = append(promises, promise)
	}
	receipt := Receipt{Events: len(promises)}
	for i, promise := range promises {
		select {
		case answer := <-promise.Ok():
			receipt.add(answer)
		case err := <-promise.Err():
			return Receipt{}, fmt.Errorf("the stream has not confirmed event %d (%s): %w", d.Events[i].Seq, promise.Msg().Subject, err)
		case <-ctx.Done():
			return Receipt{}, fmt.Errorf("the stream has not confirmed event %d: %w", d.Events[i].Seq, ctx.Err())
		}
	}
	return receipt, nil
}

func (r *Receipt) add(answer *jetstream.PubAck) {
	if r.Stream == "" {
		r.Stream, r.First = answer.Stream, answer.Sequence
	}
	r.Last = answer.Sequence
	if answer.Duplicate {
		r.Twins++
	}
}

// message is an event in the binary form of CloudEvents: attributes are headers, the event is the body.
func message(source, prefix string, e store.Event) (*nats.Msg, error) {
	envelope := notify.Wrap(source, e)
	body, err := json.Marshal(envelope.Data)
	if err != nil {
		return nil, fmt.Errorf("event %d cannot be encoded as JSON: %w", e.Seq, err)
	}
	m := nats.NewMsg(subjectOf(prefix, e))
	m.Data = body
	for name, value := range map[string]string{
		"ce-specversion": envelope.SpecVersion, "ce-id": envelope.ID, "ce-source": envelope.Source, "ce-type": envelope.Type,
		"ce-subject": envelope.Subject, "ce-time": envelope.Time.Format(time.RFC3339Nano), "ce-sequence": envelope.Sequence,
		"ce-datacontenttype": envelope.DataContentType, "content-type": envelope.DataContentType,
		jetstream.MsgIDHeader: messageID(envelope, prefix),
	} {
		if value != "" {
			m.Header[name] = []string{escape(value)}
		}
	}
	return m, nil
}

// messageID is the id by which the stream recognises duplicates. The event's number alone is not enough: another store that publishes to the same stream uses
// the same numbers, and so does a second subscription with other subjects, and the stream would silently drop their events.
func messageID(e notify.Envelope, prefix string) string {
	return e.Source + "#" + e.ID + "@" + prefix
}

// subjectOf is the prefix followed by the words of the type: holdfast.events.job.failed.
func subjectOf(prefix string, e store.Event) string {
	subject := prefix
	for word := range strings.SplitSeq(subscription.Type(e), ".") {
		if word = tokenOf(word); word == "" {
			word = "_"
		}
		subject += "." + word
	}
	return subject
}

// escape percent-encodes what a header cannot contain, as CloudEvents requires.
func escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c == '"' || c == '%' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// classify gives an error the failure code on which retry and breaker depend. Only what no server will ever accept is permanent.
func classify(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	refusal, refused := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, jetstream.ErrAsyncPublishTimeout), errors.Is(err, nats.ErrTimeout):
		return failure.WithCode(err, "HTTP_TIMEOUT") // the code whose blame is the dependency
	case errors.Is(err, nats.ErrMaxPayload):
		return failure.NeverRetry(failure.WithCode(err, "TOO_LARGE"))
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrPermissionViolation):
		return failure.WithCode(err, "UNAUTHORIZED")
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return failure.WithCode(fmt.Errorf("%w: no stream has the subject, or it has no leader now; create the stream, or set EnsureStream", err), "DEPENDENCY_DOWN")
	case refused && refusal.Code < 500:
		return failure.With(failure.WithCode(err, "UNKNOWN"), "nats_error", fmt.Sprint(refusal.ErrorCode))
	case refused:
		return failure.With(failure.WithCode(err, "DEPENDENCY_DOWN"), "nats_error", fmt.Sprint(refusal.ErrorCode))
	}
	return failure.WithCode(err, "NETWORK_ERROR")
}
