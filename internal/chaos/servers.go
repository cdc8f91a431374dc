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

// partServer is the role of a server. Its number follows.
const partServer = "server "

// Serve runs 'holdfast serve' with these command-line arguments until ctx ends.
type Serve func(ctx context.Context, args []string) error

// far reports whether this process uses the store through servers.
func (p part) far() bool { return len(p.Servers) > 0 && !strings.HasPrefix(p.Play, partServer) }

// serve runs one of the servers.
func (p part) serve(ctx context.Context, serve Serve) error {
	n, err := strconv.Atoi(strings.TrimPrefix(p.Play, partServer))
	if err != nil || n < 0 || n >= len(p.Servers) || serve == nil {
		return fmt.Errorf("this program cannot run the role %q: there are %d servers", p.Play, len(p.Servers))
	}
	return serve(ctx, []string{"serve", "--store", p.Store, "--listen", p.Servers[n], "--auth", "off", "--lease", p.Lease.String(), "--grace", "1s",
		"--policy", filepath.Join(p.Dir, policyFile), "--log-level", "error"})
}

const policyFile = "policy.yaml"

// farPolicy never gives up a job because its workers were killed, whichever server reclaims it or decides about its outcome.
const farPolicy = `defaults:
  max_attempts: 4
  max_crashes: 100000
  backoff: {shape: fixed, delay: 20ms}
  crash_backoff: {shape: fixed, delay: 20ms}
`

// reach opens the store directly, or through the servers.
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

// A turns is an HTTP transport that sends each request to the next server.
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

// RoundTrip sends the request to the next server instead of the host in its URL.
func (t *turns) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = t.servers[t.next.Add(1)%uint64(len(t.servers))]
	r.Host = r.URL.Host
	return t.way.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections to all servers.
func (t *turns) CloseIdleConnections() { t.way.CloseIdleConnections() }

// findPorts finds free addresses on loopback that restarted servers can listen on again. The ports are below the ephemeral range: otherwise a client could get
// the port of a server while that server is down.
func findPorts(n int) (addresses []string, err error) {
	for tries := 0; len(addresses) < n && tries < 1000; tries++ {
		address := fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000))
		l, taken := net.Listen("tcp", address)
		if taken != nil {
			err = taken
			continue
		}
		defer l.Close() // kept open until all are found, so that none is found twice
		addresses = append(addresses, address)
	}
	if len(addresses) < n {
		return nil, fmt.Errorf("no free port for a server: %w", err)
	}
	return addresses, nil
}

// manServers starts the servers of a run. Each keeps its address when it is restarted.
func (f *fleet) manServers(ctx context.Context, n int) (err error) {
	if f.part.Servers, err = findPorts(n); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.part.Dir, policyFile), []byte(farPolicy), 0o600); err != nil {
		return fmt.Errorf("cannot write the policy of the servers: %w", err)
	}
	for i := range n {
		if err := f.man(partServer+strconv.Itoa(i), 1); err != nil {
			return err
		}
	}
	return f.awaitServers(ctx)
}

// awaitServers waits until every server is ready.
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
				return fmt.Errorf("server %d is not ready after %v: %w\n%s", i, stuckAfter, err, strings.Join(f.troubles(), "\n"))
			}
		}
	}
	return nil
}

// retireServers asks the servers to end. It returns how many had to be killed.
func (f *fleet) retireServers(patience time.Duration) (killed int) {
	for i := range f.part.Servers {
		killed += f.retire(partServer+strconv.Itoa(i), patience)
	}
	return killed
}
