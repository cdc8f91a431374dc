package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
)

// partServer is a server; which of them follows.
const partServer = "server "

// Serve serves as the command does, by the arguments of its command line, until ctx ends.
type Serve func(ctx context.Context, args []string) error

// far reports whether this process has servers between itself and the store.
func (p part) far() bool { return len(p.Servers) > 0 && !strings.HasPrefix(p.Play, partServer) }

// serve plays one of the servers.
func (p part) serve(ctx context.Context, serve Serve) error {
	n, err := strconv.Atoi(strings.TrimPrefix(p.Play, partServer))
	if err != nil || n < 0 || n >= len(p.Servers) || serve == nil {
		return fmt.Errorf("%q cannot be played by this program: there are %d servers", p.Play, len(p.Servers))
	}
	return serve(ctx, []string{"serve", "--store", p.Store, "--listen", p.Servers[n], "--auth", "off", "--lease", p.Lease.String(), "--grace", "1s",
		"--policy", filepath.Join(p.Dir, policyFile), "--log-level", "error"})
}

const policyFile = "policy.yaml"

// farPolicy gives up on nobody who is innocent, whichever server takes a job over or judges it.
const farPolicy = `defaults:
  max_attempts: 4
  max_crashes: 100000
  backoff: {shape: fixed, delay: 20ms}
  crash_backoff: {shape: fixed, delay: 20ms}
`

// reach opens the store: itself, or by way of the servers.
func (p part) reach(ctx context.Context) (holdfast.Store, error) {
	if !p.far() {
		return openPatiently(ctx, p.Store)
	}
	c, err := p.client()
	if err != nil {
		return nil, err
	}
	return c.Store(), nil
}

func (p part) client() (*api.Client, error) {
	return api.Dial("http://"+p.Servers[0], api.Config{HTTP: &http.Client{Transport: newTurns(p.Servers)}})
}

// A turns asks one server after the other.
type turns struct {
	servers []string
	next    atomic.Uint64
	way     *http.Transport
}

func newTurns(servers []string) *turns {
	way := http.DefaultTransport.(*http.Transport).Clone()
	way.DialContext = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	way.Proxy, way.MaxIdleConns, way.MaxIdleConnsPerHost = nil, 0, 64
	return &turns{servers: servers, way: way}
}

// RoundTrip asks the next one, whoever the address names.
func (t *turns) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = t.servers[t.next.Add(1)%uint64(len(t.servers))]
	r.Host = r.URL.Host
	return t.way.RoundTrip(r)
}

// CloseIdleConnections lets go of them.
func (t *turns) CloseIdleConnections() { t.way.CloseIdleConnections() }

// findPorts finds addresses on loopback where servers can come back to. They are below those that systems give to whoever asks for any: a client might be
// given a server's own while that is down.
func findPorts(n int) (addresses []string, err error) {
	for tries := 0; len(addresses) < n && tries < 1000; tries++ {
		address := fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000))
		l, taken := net.Listen("tcp", address)
		if taken != nil {
			err = taken
			continue
		}
		defer l.Close() // held until all are found, so that none is found twice
		addresses = append(addresses, address)
	}
	if len(addresses) < n {
		return nil, fmt.Errorf("no port for a server: %w", err)
	}
	return addresses, nil
}

// manServers starts the servers of a run, each at an address that it keeps.
func (f *fleet) manServers(ctx context.Context, n int) (err error) {
	if f.part.Servers, err = findPorts(n); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.part.Dir, policyFile), []byte(farPolicy), 0o600); err != nil {
		return fmt.Errorf("no policy for the servers: %w", err)
	}
	for i := range n {
		if err := f.man(partServer+strconv.Itoa(i), 1); err != nil {
			return err
		}
	}
	return f.awaitServers(ctx)
}

// awaitServers waits until every server says that it is ready.
func (f *fleet) awaitServers(ctx context.Context) error {
	ask := http.Client{Timeout: 10 * time.Second}
	for i, address := range f.part.Servers {
		for deadline := time.Now().Add(stuckAfter); ; pause(ctx, 50*time.Millisecond) {
			answer, err := ask.Get("http://" + address + "/readyz")
			if err == nil {
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					break
				}
				err = errors.New(answer.Status)
			}
			if ctx.Err() != nil || time.Now().After(deadline) {
				return fmt.Errorf("server %d is not ready within %v: %w\n%s", i, stuckAfter, err, strings.Join(f.troubles(), "\n"))
			}
		}
	}
	return nil
}

// retireServers asks the servers to end.
func (f *fleet) retireServers(patience time.Duration) (killed int) {
	for i := range f.part.Servers {
		killed += f.retire(partServer+strconv.Itoa(i), patience)
	}
	return killed
}
