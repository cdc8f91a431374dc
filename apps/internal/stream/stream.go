// Package stream connects applications to JetStream, the streams of NATS.
package stream

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const callTimeout = 10 * time.Second

// Connect returns a connection to the servers at an address; name is how they show it. It does not wait for servers that are down: the connection is made when it can
// be, and again after each loss. Calls while there is none return an error and are not kept for later.
func Connect(name, url string, options ...nats.Option) (*nats.Conn, jetstream.JetStream, error) {
	options = append([]nats.Option{
		nats.Name(name), nats.Timeout(5 * time.Second), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectBufSize(-1), nats.IgnoreAuthErrorAbort(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // callers get the errors of their calls
	}, options...)
	conn, err := nats.Connect(url, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("the NATS server cannot be used: %w", err)
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(callTimeout))
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, js, nil
}

// Connected returns an error that says why there is no connection.
func Connected(conn *nats.Conn) error {
	if conn.IsConnected() {
		return nil
	}
	err := conn.LastError()
	if err == nil {
		err = nats.ErrDisconnected
	}
	return fmt.Errorf("the NATS server cannot be reached: %w", err)
}
