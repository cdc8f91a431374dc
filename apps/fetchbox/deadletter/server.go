package deadletter

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const serverStartTimeout = 30 * time.Second

// A Server is a NATS server with JetStream inside this process, for installations that have no server of their own.
type Server struct{ inner *server.Server }

// StartServer starts a server that keeps its streams in a folder. It listens on address (host:port) for consumers in other processes; with an empty address it
// listens nowhere and only this process can connect.
func StartServer(folder, address string) (*Server, error) {
	options := &server.Options{
		ServerName: "fetchbox", JetStream: true, StoreDir: folder, SyncAlways: true, // an acknowledged dead letter survives a power loss
		NoLog: true, NoSigs: true, DontListen: address == "",
	}
	if address != "" {
		host, text, err := net.SplitHostPort(address)
		port, bad := strconv.Atoi(text)
		if err = errors.Join(err, bad); err != nil {
			return nil, fmt.Errorf("the address of the NATS server is not host:port: %w", err)
		}
		if port == 0 {
			port = server.RANDOM_PORT
		}
		probe, err := net.Listen("tcp", address) // the server ends the process when it cannot listen
		if err != nil {
			return nil, fmt.Errorf("the NATS server cannot listen: %w", err)
		}
		_ = probe.Close()
		options.Host, options.Port = host, port
	}
	inner, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("the NATS server cannot be made: %w", err)
	}
	go inner.Start()
	if !inner.ReadyForConnections(serverStartTimeout) {
		inner.Shutdown()
		return nil, errors.New("the NATS server does not start: check that its folder can be written and is used by no other process")
	}
	return &Server{inner}, nil
}

// URL returns the address for clients in other processes.
func (s *Server) URL() string { return s.inner.ClientURL() }

// Option connects a client in this process without a network.
func (s *Server) Option() nats.Option { return nats.InProcessServer(s.inner) }

// Close stops the server after its writes.
func (s *Server) Close() {
	s.inner.Shutdown()
	s.inner.WaitForShutdown()
}
