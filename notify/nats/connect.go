package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// connected returns the shared connection, or why there is none. It does not wait for servers that are down, and nothing is buffered for them: an event
// counts as delivered only when the stream has confirmed it.
func (s *Sink) connected() (jetstream.JetStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the NATS sink is closed")
	}
	if s.conn == nil || s.conn.IsClosed() {
		if err := s.connect(); err != nil {
			return nil, err
		}
	}
	if !s.conn.IsConnected() {
		if err := s.conn.LastError(); err != nil {
			return nil, err
		}
		return nil, nats.ErrDisconnected
	}
	return s.js, nil
}

func (s *Sink) connect() error {
	options := []nats.Option{
		nats.Name("holdfast"), nats.Timeout(5 * time.Second), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(500 * time.Millisecond), nats.ReconnectJitter(200*time.Millisecond, time.Second), nats.ReconnectBufSize(-1),
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2), nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the connection's LastError has it too
	}
	if s.cfg.Credentials != "" {
		options = append(options, nats.UserCredentials(s.cfg.Credentials))
	}
	conn, err := nats.Connect(s.cfg.URL, append(options, s.cfg.Options...)...)
	if err != nil {
		return err
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncTimeout(s.cfg.Timeout), jetstream.WithDefaultTimeout(s.cfg.Timeout))
	if err != nil {
		conn.Close()
		return err
	}
	s.conn, s.js = conn, js
	clear(s.ensured)
	return nil
}

// ensure creates the stream, or adds a subject to it, once for each destination until an error occurs there.
func (s *Sink) ensure(ctx context.Context, js jetstream.JetStream, at destination) error {
	s.mu.Lock()
	ready := !s.cfg.EnsureStream || s.ensured[at]
	s.mu.Unlock()
	if ready {
		return nil
	}
	if err := s.prepare(ctx, js, at); err != nil {
		return fmt.Errorf("the stream %s cannot be created or changed: %w", at.stream, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ensured[at] = true
	return nil
}

func (s *Sink) prepare(ctx context.Context, js jetstream.JetStream, at destination) error {
	subjects := at.subject + ".>"
	found, err := js.Stream(ctx, at.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: at.stream, Description: "events of Holdfast", Subjects: []string{subjects},
			Storage: jetstream.FileStorage, Replicas: s.cfg.Replicas, Duplicates: s.cfg.Duplicates,
		})
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return errors.New("another process is creating it") // the next attempt finds it
		}
		return err
	}
	if err != nil {
		return err
	}
	cfg := found.CachedInfo().Config
	if slices.ContainsFunc(cfg.Subjects, func(pattern string) bool { return matchesAll(pattern, subjects) }) {
		return nil
	}
	cfg.Subjects = append(cfg.Subjects, subjects)
	_, err = js.UpdateStream(ctx, cfg)
	return err
}

// matchesAll reports whether a stream with one subject pattern receives everything that another pattern matches.
func matchesAll(pattern, other string) bool {
	mine, its := strings.Split(pattern, "."), strings.Split(other, ".")
	for i, token := range mine {
		switch {
		case token == ">":
			return len(its) > i
		case i >= len(its), its[i] == ">", token != "*" && token != its[i]:
			return false
		}
	}
	return len(mine) == len(its)
}

// forget makes ensure check a destination again.
func (s *Sink) forget(at destination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ensured, at)
}
