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

	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/store"
)

// roleServer is the role of a server. Its number follows.
const roleServer = "server "

// Serve runs 'holdfast serve' with these command-line arguments until ctx ends.
type Serve func(ctx context.Context, args []string) error

// remote reports whether this process uses the store through servers.
func (p childSpec) remote() bool { return len(p.Servers) > 0 && !strings.HasPrefix(p.Role, roleServer) }

// serve runs one of the servers.
func (p childSpec) serve(ctx context.Context, serve Serve) error {
	n, err := strconv.Atoi(strings.TrimPrefix(p.Role, roleServer))
	if err != nil || n < 0 || n >= len(p.Servers) || serve == nil {
		return fmt.Errorf("this program cannot run the role %q: there are %d servers", p.Role, len(p.Servers))
	}
	return serve(ctx, []string{"serve", "--store", p.Store, "--listen", p.Servers[n], "--auth", "off", "--lease", p.Lease.String(), "--grace", "1s",
		"--policy", filepath.Join(p.Dir, policyFile), "--log-level", "error"})
}

const policyFile = "policy.yaml"

// serverPolicy never gives up a job because its workers were killed, whichever server reclaims it or decides about its outcome.
const serverPolicy = `defaults:
  max_attempts: 4
  max_crashes: 100000
  backoff: {shape: fixed, delay: 20ms}
  crash_backoff: {shape: fixed, delay: 20ms}
`

// openStore opens the store directly, or through the servers.
func (p childSpec) openStore(ctx context.Context) (store.Store, error) {
	if !p.remote() {
		return openWithRetry(ctx, p.Store)
	}
	c, err := p.client()
	if err != nil {
		return nil, err
	}
	return c.Store(), nil
}

func (p childSpec) client() (*client.Client, error) {
	return client.Dial("http://"+p.Servers[0], client.Config{HTTP: &http.Client{Transport: newRoundRobin(p.Servers)}})
}

// A roundRobin is an HTTP transport that sends each request to the next server.
type roundRobin struct {
	servers []string
	next    atomic.Uint64
	way     *http.Transport
}

func newRoundRobin(servers []string) *roundRobin {
	way := http.DefaultTransport.(*http.Transport).Clone()
	way.DialContext = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	way.Proxy, way.MaxIdleConns, way.MaxIdleConnsPerHost = nil, 0, 64
	return &roundRobin{servers: servers, way: way}
}

// RoundTrip sends the request to the next server instead of the host in its URL.
func (t *roundRobin) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = t.servers[t.next.Add(1)%uint64(len(t.servers))]
	r.Host = r.URL.Host
	return t.way.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections to all servers.
func (t *roundRobin) CloseIdleConnections() { t.way.CloseIdleConnections() }

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

// startServers starts the servers of a run. Each keeps its address when it is restarted.
func (f *fleet) startServers(ctx context.Context, n int) (err error) {
	if f.spec.Servers, err = findPorts(n); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.spec.Dir, policyFile), []byte(serverPolicy), 0o600); err != nil {
		return fmt.Errorf("cannot write the policy of the servers: %w", err)
	}
	for i := range n {
		if err := f.start(roleServer+strconv.Itoa(i), 1); err != nil {
			return err
		}
	}
	return f.awaitServers(ctx)
}

// awaitServers waits until every server is ready.
func (f *fleet) awaitServers(ctx context.Context) error {
	ask := http.Client{Timeout: 10 * time.Second}
	for i, address := range f.spec.Servers {
		for deadline := time.Now().Add(stuckAfter); ; sleep(ctx, 50*time.Millisecond) {
			answer, err := ask.Get("http://" + address + "/readyz")
			if err == nil {
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					break
				}
				err = errors.New(answer.Status)
			}
			if ctx.Err() != nil || time.Now().After(deadline) {
				return fmt.Errorf("server %d is not ready after %v: %w\n%s", i, stuckAfter, err, strings.Join(f.unexpectedExits(), "\n"))
			}
		}
	}
	return nil
}

// stopServers asks the servers to end. It returns how many had to be killed.
func (f *fleet) stopServers(patience time.Duration) (killed int) {
	for i := range f.spec.Servers {
		killed += f.stop(roleServer+strconv.Itoa(i), patience)
	}
	return killed
}
