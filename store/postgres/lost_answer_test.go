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
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
)

// An answerDropper is a proxy between a store and its database. When armed, it forwards the request and drops the connection instead of the answer:
// the database may have done what was requested, and the store does not know.
type answerDropper struct {
	to      string
	drop    atomic.Int64 // which of the next answers is dropped; 0 is none
	dropped atomic.Int64
	conns   sync.WaitGroup
}

func (h *answerDropper) listen(t testing.TB) string {
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

func (h *answerDropper) serve(client net.Conn) {
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
		if h.drop.Load() > 0 && h.drop.Add(-1) == 0 {
			h.dropped.Add(1)
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// newLossyWorld is a world whose store connects through an answerDropper, in one of the driver's protocol modes.
func newLossyWorld(t testing.TB, mode string) (*world, *answerDropper) {
	base := pgtest.Database(t)
	address, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	h := &answerDropper{to: address.Host}
	address.Host = h.listen(t)
	options := address.Query()
	options.Set("default_query_exec_mode", mode)
	address.RawQuery = options.Encode()
	w := newWorldAt(t, base)
	w.store = w.open(postgres.Config{URL: address.String(), MaxConns: 2})
	return w, h
}

// everyMode runs a test in each protocol mode: they notice a lost answer in different ways.
func everyMode(t *testing.T, try func(*world, *answerDropper)) {
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) { try(newLossyWorld(t, mode)) })
	}
}

func TestAnEnqueueWhoseAnswerIsLostAddsItsJobsOnce(t *testing.T) {
	everyMode(t, enqueueWithLostAnswers)
}

func enqueueWithLostAnswers(w *world, h *answerDropper) {
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
			h.drop.Store(n + 1)
			receipts := w.enqueue(w.store, drafts...)
			h.drop.Store(0)
			total += 1 + len(drafts)
			for _, r := range receipts {
				if r.Existing {
					w.Errorf("%s, answer %d dropped: a new draft got the receipt of an existing job", name, n+1)
				}
			}
			if there := w.count("SELECT count(*) FROM holdfast_job"); there != total {
				w.Fatalf("%s, answer %d dropped: %d jobs, want %d", name, n+1, there, total)
			}
		}
	}
	w.checkDroppedAndHealthy(h)
}

func TestAClaimWhoseAnswerIsLostIsRecovered(t *testing.T) {
	everyMode(t, func(w *world, h *answerDropper) { claimWithLostAnswers(w, h, "", "") })
}

func TestAPlannedClaimWhoseAnswerIsLostIsRecovered(t *testing.T) {
	everyMode(t, func(w *world, h *answerDropper) {
		w.ok(w.store.Pause(w.ctx, store.Hold{Queue: "default", AtMost: 5, Actor: "ann"}))
		claimWithLostAnswers(w, h, "acme", "zeta")
	})
}

func claimWithLostAnswers(w *world, h *answerDropper, owner, other string) {
	for n := range int64(5) {
		w.enqueue(w.store, holdfast.Draft{Kind: "mail", Owner: owner}, holdfast.Draft{Kind: "mail", Owner: other})
		h.drop.Store(n + 1)
		leases := w.claim(10)
		h.drop.Store(n + 1)
		if len(leases) != 2 {
			w.Fatalf("answer %d dropped: claimed %d", n+1, len(leases))
		}
		answers, err := w.store.Settle(w.ctx, []store.Settlement{complete(leases[0]), complete(leases[1])})
		h.drop.Store(0)
		w.ok(errors.Join(append(answers, err)...))
	}
	if n := w.count("SELECT count(*) FROM holdfast_batch"); n != 0 {
		w.Fatalf("%d batches without a worker", n)
	}
	w.checkDroppedAndHealthy(h)
}

func TestAnInterventionWhoseAnswerIsLostIsNotRepeated(t *testing.T) {
	everyMode(t, cancelWithLostAnswers)
}

func cancelWithLostAnswers(w *world, h *answerDropper) {
	for n := range int64(4) {
		id := w.enqueue(w.store, holdfast.Draft{Kind: "mail"})[0].ID
		h.drop.Store(n + 1)
		_, err := w.store.Cancel(w.ctx, store.Intervention{Job: id, Actor: "ann"})
		h.drop.Store(0)
		if err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
			w.Fatal(err)
		}
		if events := w.count("SELECT count(*) FROM holdfast_event WHERE job = $1", id.String()); events > 1 || err == nil && events != 1 {
			w.Fatalf("answer %d dropped: %d events", n+1, events)
		}
	}
	w.checkDroppedAndHealthy(h)
}

// checkDroppedAndHealthy checks that an answer was dropped and that the store passes the integrity check.
func (w *world) checkDroppedAndHealthy(h *answerDropper) {
	w.Helper()
	if h.dropped.Load() == 0 {
		w.Fatal("no answer was dropped")
	}
	if findings, err := w.store.CheckIntegrity(w.ctx); err != nil || len(findings) > 0 {
		w.Fatal(findings, err)
	}
}
