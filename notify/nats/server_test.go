package nats_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	natssink "github.com/holdfastdev/holdfast/notify/nats"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// patience is how long a test waits for something that must happen. It is generous: nothing is measured by it.
const patience = 90 * time.Second

// until polls until a condition is true.
func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if yes() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

// serve starts a server with JetStream. Port 0 is any free one.
func serve(t *testing.T, folder string, port int) *server.Server {
	t.Helper()
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return start(t, &server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true})
}

func start(t *testing.T, options *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s
}

// cluster starts three servers that know each other, and waits until they have a leader.
func cluster(t *testing.T) []*server.Server {
	t.Helper()
	var ports []int
	routes := ""
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes += ",nats://127.0.0.1:" + strconv.Itoa(ports[len(ports)-1])
		l.Close()
	}
	var servers []*server.Server
	for i, port := range ports {
		servers = append(servers, start(t, &server.Options{
			ServerName: fmt.Sprintf("node%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: port}, Routes: server.RoutesFromStr(routes[1:]),
		}))
	}
	until(t, "the cluster has a leader and three members", func() bool {
		for _, s := range servers {
			if s.JetStreamIsLeader() {
				return len(s.JetStreamClusterPeers()) == 3
			}
		}
		return false
	})
	return servers
}

func open(t *testing.T, cfg natssink.Config) *natssink.Sink {
	t.Helper()
	sink, err := natssink.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close(context.Background()) })
	return sink
}

func admin(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// kept reads all messages of a stream.
func kept(t *testing.T, js jetstream.JetStream, name string) (all []*jetstream.RawStreamMsg) {
	t.Helper()
	var s jetstream.Stream
	var info *jetstream.StreamInfo
	until(t, "the stream says what it has", func() (ok bool) {
		var err error
		if s, err = js.Stream(t.Context(), name); err == nil {
			info, err = s.Info(t.Context())
		}
		return err == nil
	})
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		var m *jetstream.RawStreamMsg
		until(t, "a message can be read", func() bool {
			var err error
			m, err = s.GetMsg(t.Context(), seq)
			return err == nil || errors.Is(err, jetstream.ErrMsgNotFound)
		})
		if m != nil {
			all = append(all, m)
		}
	}
	return all
}

// delivery is some events in a row.
func delivery(target string, first, n int64) notify.Delivery {
	d := notify.Delivery{Subscription: subscription.Subscription{ID: holdfast.NewID(), Sink: "stream", Target: target}, ID: fmt.Sprint(first), Attempt: 1}
	for seq := first; seq < first+n; seq++ {
		d.Events = append(d.Events, store.Event{Seq: seq, Job: holdfast.NewID(), Name: store.EventComplete, Kind: "k", At: time.Unix(seq, 0)})
	}
	return d
}
