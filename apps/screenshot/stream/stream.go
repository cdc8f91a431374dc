// Package stream publishes the retry events of shots on a JetStream stream of NATS, for consumers outside of the service.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfastdev/holdfast/apps/internal/stream"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/failure"
)

// The stream, and what its subjects begin with: screenshot.retries.RetryScheduled and so on.
const (
	Name    = "SCREENSHOT_RETRIES"
	Subject = "screenshot.retries"
)

const (
	duplicates = 10 * time.Minute
	keep       = 7 * 24 * time.Hour
)

// A Stream is a connection to the stream. It is safe for concurrent use.
type Stream struct {
	conn *nats.Conn
	js   jetstream.JetStream
}

// Connect returns the stream on the servers at an address. It does not wait for servers that are down. The stream is made when it is first needed.
func Connect(url string, options ...nats.Option) (*Stream, error) {
	conn, js, err := stream.Connect("screenshot", url, options...)
	if err != nil {
		return nil, err
	}
	return &Stream{conn, js}, nil
}

// Close ends the connection.
func (s *Stream) Close() { s.conn.Close() }

// A Message is what consumers get, in JSON.
type Message struct {
	service.RetryEvent
	Organisation string `json:"organisationId"`
}

// Publish appends an event, and returns when the stream has stored it. An event whose id the stream has received in the last ten minutes is not appended again.
func (s *Stream) Publish(ctx context.Context, id, owner string, e service.RetryEvent) error {
	if err := stream.Connected(s.conn); err != nil {
		return failure.WithCode(err, "NETWORK_ERROR")
	}
	body, err := json.Marshal(Message{e, owner})
	if err != nil {
		return failure.NeverRetry(err)
	}
	m := nats.NewMsg(Subject + "." + e.Type)
	m.Data = body
	m.Header.Set("Content-Type", "application/json")
	publish := func() error {
		_, err := s.js.PublishMsg(ctx, m, jetstream.WithMsgID(id), jetstream.WithExpectStream(Name), jetstream.WithRetryAttempts(0))
		return err
	}
	if err = publish(); errors.Is(err, jetstream.ErrNoStreamResponse) {
		if err = s.create(ctx); err == nil {
			err = publish()
		}
	}
	if err != nil {
		return failure.WithCode(fmt.Errorf("the stream has not confirmed the event: %w", err), "NETWORK_ERROR")
	}
	return nil
}

func (s *Stream) create(ctx context.Context) error {
	_, err := s.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: Name, Description: "retry events of the screenshot service", Subjects: []string{Subject + ".*"}, Storage: jetstream.FileStorage, Duplicates: duplicates, MaxAge: keep,
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process has just made it
		return nil
	}
	return err
}
