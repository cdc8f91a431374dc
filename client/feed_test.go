package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
)

func TestATailYieldsEveryEventOnceAlthoughItsConnectionBreaks(t *testing.T) {
	p := newTestServer(t, func(c *server.Config) { c.Listen = []string{"*"} })
	if err := p.near.Apply(t.Context(), store.Change{Listen: []store.Listener{{Name: "feed", Events: []string{"*"}}}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var dialled atomic.Int64
	way := roundTrip(func(r *http.Request) (*http.Response, error) {
		dialled.Add(1)
		return http.DefaultTransport.RoundTrip(r)
	})
	operator := p.dial(client.Config{HTTP: &http.Client{Transport: way}}).Operator()
	ids := p.enqueue(holdfast.Draft{Kind: "mail"}, holdfast.Draft{Kind: "mail"})
	p.sequence()
	told := 0
	for page, err := range operator.Tail(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			if told++; e.Seq != int64(told) || e.Job != ids[told-1] || e.Name != "queued" || page.Next != e.Seq {
				t.Fatalf("event %d: %+v", told, e)
			}
		}
		switch told {
		case 2:
			p.web.CloseClientConnections()
			ids = append(ids, p.enqueue(holdfast.Draft{Kind: "mail"})...)
			p.sequence()
		case 3:
			cancel()
		}
	}
	if told != 3 || dialled.Load() < 2 {
		t.Fatal(told, dialled.Load())
	}
}

func (p *testServer) sequence() {
	p.Helper()
	for {
		if n, err := p.near.Sequence(p.Context(), 100); err != nil || n < 100 {
			if err != nil {
				p.Fatal(err)
			}
			return
		}
	}
}

func TestAClosingServerEndsRequestsThatWaitOrStream(t *testing.T) {
	near := newTestServer(t).near
	srv, err := server.New(server.Config{Store: near, Operator: ops.New(near, ops.Config{}), Open: true, IgnoreKeys: true, Log: silent})
	if err != nil {
		t.Fatal(err)
	}
	web := srv.HTTP("")
	p := &testServer{t, near, httptest.NewUnstartedServer(srv)}
	p.web.Config = web
	p.web.Start()
	t.Cleanup(p.web.Close)
	ended := make(chan error, 2)
	go func() {
		_, err := p.dial(client.Config{Patience: -1}).Store().Await(t.Context(), []string{"default"}, time.Second)
		ended <- err
	}()
	response, err := http.Get(p.web.URL + "/v1/events")
	if err != nil || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatal(response, err)
	}
	go func() {
		_, _ = response.Body.Read(make([]byte, 1))
		for err = error(nil); err == nil; {
			_, err = response.Body.Read(make([]byte, 512))
		}
		ended <- nil
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	<-ended
	<-ended
	_ = response.Body.Close()
}
