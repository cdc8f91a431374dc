package postgres_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store/postgres"
)

// A thief sits between a store and its database. Armed, it lets the question through and keeps the answer: what was asked
// may have been done, and nobody was told.
type thief struct {
	to    string
	steal atomic.Int64 // which of the next answers; 0 is none
	taken atomic.Int64
	conns sync.WaitGroup
}

func (h *thief) listen(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(); h.conns.Wait() })
	h.conns.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			h.conns.Go(func() { h.serve(client) })
		}
	})
	return listener.Addr().String()
}

func (h *thief) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", h.to)
	if err != nil {
		return
	}
	defer server.Close()
	h.conns.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		if h.steal.Load() > 0 && h.steal.Add(-1) == 0 {
			h.taken.Add(1)
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// robbed is a world whose store speaks through a thief, in one of the driver's modes.
func robbed(t testing.TB, mode string) (*world, *thief) {
	base := pgtest.Database(t)
	address, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	h := &thief{to: address.Host}
	address.Host = h.listen(t)
	options := address.Query()
	options.Set("default_query_exec_mode", mode)
	address.RawQuery = options.Encode()
	w := newWorldAt(t, base)
	w.store = w.open(postgres.Config{URL: address.String(), Pool: 2})
	return w, h
}

// everyMode tries a promise in each of the driver's modes: they notice a lost answer in different ways.
func everyMode(t *testing.T, try func(*world, *thief)) {
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) { try(robbed(t, mode)) })
	}
}

func TestAnEnqueueWhoseAnswerIsLostAddsItsJobsOnce(t *testing.T) { everyMode(t, enqueueRobbed) }

func enqueueRobbed(w *world, h *thief) {
	many := make([]holdfast.Draft, 120)
	for i := range many {
		many[i] = holdfast.Draft{Kind: "mail"}
	}
	total := 0
	for n := range int64(6) {
		for name, drafts := range map[string][]holdfast.Draft{
			"plain": {{Kind: "mail"}, {Kind: "mail", Delay: time.Hour}},
			"bulk":  many,
			"keyed": {{Kind: "mail", UniqueKey: fmt.Sprint(n)}, {Kind: "mail", IdempotencyKey: fmt.Sprint(n)}, {Kind: "mail"}},
		} {
			w.enqueue(w.store, holdfast.Draft{Kind: "warm"})
			h.steal.Store(n + 1)
			receipts := w.enqueue(w.store, drafts...)
			h.steal.Store(0)
			total += 1 + len(drafts)
			for _, r := range receipts {
				if r.Existing {
					w.Errorf("%s, answer %d stolen: a new draft was answered as a twin", name, n+1)
				}
			}
			if there := w.count("SELECT count(*) FROM holdfast_job"); there != total {
				w.Fatalf("%s, answer %d stolen: %d jobs, want %d", name, n+1, there, total)
			}
		}
	}
	w.robbedAndHealthy(h)
}

func TestAClaimWhoseAnswerIsLostIsPickedUp(t *testing.T) {
	everyMode(t, func(w *world, h *thief) { claimRobbed(w, h, "", "") })
}

func TestAPlannedClaimWhoseAnswerIsLostIsPickedUp(t *testing.T) {
	everyMode(t, func(w *world, h *thief) {
		w.ok(w.store.Pause(w.ctx, holdfast.Hold{Queue: "default", AtMost: 5, Actor: "ann"}))
		claimRobbed(w, h, "acme", "zeta")
	})
}

func claimRobbed(w *world, h *thief, owner, other string) {
	for n := range int64(5) {
		w.enqueue(w.store, holdfast.Draft{Kind: "mail", Owner: owner}, holdfast.Draft{Kind: "mail", Owner: other})
		h.steal.Store(n + 1)
		leases := w.claim(10)
		h.steal.Store(n + 1)
		if len(leases) != 2 {
			w.Fatalf("answer %d stolen: claimed %d", n+1, len(leases))
		}
		answers, err := w.store.Settle(w.ctx, []holdfast.Settlement{complete(leases[0]), complete(leases[1])})
		h.steal.Store(0)
		w.ok(errors.Join(append(answers, err)...))
	}
	if n := w.count("SELECT count(*) FROM holdfast_lease"); n != 0 {
		w.Fatalf("%d leases nobody knows of", n)
	}
	w.robbedAndHealthy(h)
}

func TestAnInterventionWhoseAnswerIsLostIsNotRepeatedBlindly(t *testing.T) {
	everyMode(t, cancelRobbed)
}

func cancelRobbed(w *world, h *thief) {
	for n := range int64(4) {
		id := w.enqueue(w.store, holdfast.Draft{Kind: "mail"})[0].ID
		h.steal.Store(n + 1)
		_, err := w.store.Cancel(w.ctx, holdfast.Intervention{Job: id, Actor: "ann"})
		h.steal.Store(0)
		if err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
			w.Fatal(err)
		}
		if events := w.count("SELECT count(*) FROM holdfast_event WHERE job = $1", id.String()); events > 1 || err == nil && events != 1 {
			w.Fatalf("answer %d stolen: %d events", n+1, events)
		}
	}
	w.robbedAndHealthy(h)
}

// robbedAndHealthy makes sure that the test was one.
func (w *world) robbedAndHealthy(h *thief) {
	w.Helper()
	if h.taken.Load() == 0 {
		w.Fatal("nothing was stolen")
	}
	if findings, err := w.store.Audit(w.ctx); err != nil || len(findings) > 0 {
		w.Fatal(findings, err)
	}
}
