package nats_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natssink "github.com/holdfastdev/holdfast/notify/nats"
)

// leads finds the leader of a stream, and the addresses of all servers with the leader's first.
func leads(t *testing.T, js jetstream.JetStream, servers []*server.Server) (leader *server.Server, urls string) {
	t.Helper()
	until(t, "somebody leads the stream", func() bool {
		found, err := js.Stream(t.Context(), "EVENTS")
		if err != nil || found.CachedInfo().Cluster == nil {
			return false
		}
		for _, s := range servers {
			if s.Name() == found.CachedInfo().Cluster.Leader {
				leader = s
			}
		}
		return leader != nil
	})
	urls = leader.ClientURL()
	for _, s := range servers {
		if s != leader {
			urls += "," + s.ClientURL()
		}
	}
	return leader, urls
}

func TestEveryEventSurvivesTheLossOfTheStreamsLeader(t *testing.T) {
	servers := cluster(t)
	js := admin(t, servers[0].ClientURL()+","+servers[1].ClientURL()+","+servers[2].ClientURL())
	until(t, "the stream is made", func() bool {
		_, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"acme.events.>"}, Replicas: 3, Duplicates: time.Hour})
		return err == nil
	})
	leader, urls := leads(t, js, servers)
	sink := open(t, natssink.Config{URL: urls, Stream: "EVENTS", Timeout: 5 * time.Second, Options: []nats.Option{nats.DontRandomize()}})
	attempts := 0
	deliver := func(page int) {
		d := delivery("acme.events", int64(page*50+1), 50)
		until(t, "the delivery succeeds", func() bool {
			attempts++
			_, err := sink.Deliver(t.Context(), d)
			return err == nil
		})
	}
	pages := 0
	for ; pages < 5; pages++ {
		deliver(pages)
	}
	down := make(chan struct{})
	go func() {
		defer close(down)
		leader.Shutdown()
		leader.WaitForShutdown()
	}()
	for gone := false; !gone; pages++ { // also while it goes down
		deliver(pages)
		select {
		case <-down:
			gone = true
		default:
		}
	}
	for range 5 {
		deliver(pages)
		pages++
	}
	t.Logf("%d deliveries in %d attempts", pages, attempts)
	seen := make(map[string]int)
	for _, m := range kept(t, js, "EVENTS") {
		seen[m.Header.Get("ce-id")]++
	}
	for seq := 1; seq <= pages*50; seq++ {
		if n := seen[strconv.Itoa(seq)]; n != 1 {
			t.Errorf("event %d is there %d times", seq, n)
		}
	}
}
