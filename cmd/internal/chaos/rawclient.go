package chaos

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
)

// A rawClient is a minimal HTTP client. It needs little CPU, because it runs on the same machine as the server that it overloads. It is not safe for concurrent use.
type rawClient struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
	out     bytes.Buffer
}

func dialRawClient(ctx context.Context, address string) (*rawClient, error) {
	w := &rawClient{address: address}
	return w, w.dial(ctx)
}

func (w *rawClient) dial(ctx context.Context) (err error) {
	dialer := net.Dialer{Timeout: stuckAfter}
	if w.conn, err = dialer.DialContext(ctx, "tcp", w.address); err != nil {
		return fmt.Errorf("cannot connect to the server: %w", err)
	}
	w.in = bufio.NewReader(w.conn)
	return nil
}

func (w *rawClient) close() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
}

// post sends a request and waits for its answer, at most stuckAfter. It returns the status and the Retry-After header.
func (w *rawClient) post(path string, body []byte, out any) (status int, after string, err error) {
	if w.conn == nil {
		if err := w.dial(context.Background()); err != nil {
			return 0, "", err
		}
	}
	w.out.Reset()
	fmt.Fprintf(&w.out, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, w.address, len(body))
	w.out.Write(body)
	_ = w.conn.SetDeadline(time.Now().Add(stuckAfter))
	_, err = w.conn.Write(w.out.Bytes())
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(w.in, nil)
	}
	if err != nil {
		w.close()
		w.conn = nil
		return 0, "", err
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.Close {
		w.close()
		w.conn = nil
	}
	if err == nil && out != nil && answer.StatusCode == http.StatusOK {
		err = api.UnmarshalLoose(text, out)
	}
	return answer.StatusCode, answer.Header.Get("Retry-After"), err
}

// leaseHolders are workers that renew a lease during the overload, and records how that went.
type leaseHolders struct {
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	renewals int
	failed   int
	slowest  time.Duration
	problems []string
}

// holdLeases starts workers that claim one job each and renew its lease until they are stopped.
func (l *load) holdLeases(ctx context.Context) (*leaseHolders, error) {
	k := &leaseHolders{}
	ctx, k.cancel = context.WithCancel(ctx)
	for i := range holderCount {
		w, err := dialRawClient(ctx, l.address)
		if err != nil {
			k.stop()
			return nil, err
		}
		var out api.ClaimOut
		status, _, err := w.post("/v1/claims", fmt.Appendf(nil, `{"worker":"holder-%d","queues":["load"],"lease":"10m"}`, i), &out)
		if err != nil || len(out.Leases) != 1 {
			k.stop()
			w.close()
			return nil, fmt.Errorf("a claim got status %d and %d jobs: %w", status, len(out.Leases), err)
		}
		k.work.Go(func() {
			defer w.close()
			for ; ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
				k.renew(w, out.Leases[0])
			}
		})
	}
	return k, nil
}

func (k *leaseHolders) stop() {
	k.cancel()
	k.work.Wait()
}

func (k *leaseHolders) renew(w *rawClient, l api.Lease) {
	var in api.RenewIn
	var bad api.RenewOut
	lease := 10 * time.Minute
	in.Body.Lease, in.Body.Renewals = &lease, []api.Renewal{{Batch: l.Batch, Running: []holdfast.ID{l.ID}}}
	text, err := api.Marshal(in.Body)
	begun, status := time.Now(), 0
	if err == nil {
		status, _, err = w.post("/v1/claims/renew", text, &bad)
	}
	took := time.Since(begun)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewals, k.slowest = k.renewals+1, max(k.slowest, took)
	if err != nil || status != http.StatusOK || len(bad.Lost) > 0 {
		k.failed++
		k.problems = append(k.problems, fmt.Sprintf("a renewal got status %d, %v lost: %v", status, bad.Lost, err))
	}
}
