package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// A Pooler is a PgBouncer in transaction mode in front of a server: every transaction of a client may get another of the pooler's few connections.
type Pooler struct {
	dir     string
	port    int
	config  string
	process *process
}

// Pooled starts a pooler with so many connections per database in front of the server that a URL names. It ends with the test.
func Pooled(t testing.TB, server string, size int) *Pooler {
	t.Helper()
	p, err := startPooler(server, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the pooler's log ends:\n%s", p.logged())
		}
		if err := p.Stop(); err != nil {
			t.Log(err)
		}
		_ = os.RemoveAll(p.dir)
	})
	return p
}

func startPooler(server string, size int) (*Pooler, error) {
	base, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("pgtest: no pooler without the server's URL: %w", err)
	}
	p := &Pooler{}
	if p.dir, err = temporaryDir(); err != nil {
		return nil, err
	}
	for range 10 { // ports
		p.port = 12000 + rand.IntN(18000)
		p.config = configOf(base, p.dir, p.port, size)
		if err = p.Start(); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	if err != nil {
		_ = os.RemoveAll(p.dir)
	}
	return p, err
}

// configOf lets every client in and has the pooler log in to the server as the URL says.
func configOf(base *url.URL, dir string, port, size int) string {
	at := fmt.Sprintf("host=%s port=%s user=%s", base.Hostname(), orElse(base.Port(), "5432"), base.User.Username())
	if password, ok := base.User.Password(); ok {
		at += " password='" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	return fmt.Sprintf(`[databases]
* = %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
server_tls_sslmode = %s
server_login_retry = 1
logfile = %s
`, at, port, size, orElse(base.Query().Get("sslmode"), "prefer"), filepath.Join(dir, "log"))
}

func orElse(value, other string) string {
	if value == "" {
		return other
	}
	return value
}

// URL is where the database of a server's URL is found by way of the pooler.
func (p *Pooler) URL(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return database
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d", p.port)
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// Start runs the pooler, again if it was stopped, and returns when it answers.
func (p *Pooler) Start() error {
	program, err := testprograms.Pgbouncer.Ensure()
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	file := filepath.Join(p.dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(p.config), 0o644); err != nil {
		return fmt.Errorf("pgtest: no settings for the pooler: %w", err)
	}
	if err := handOver(p.dir); err != nil {
		return fmt.Errorf("pgtest: the pooler's folder cannot be handed to the user it runs as: %w", err)
	}
	cmd := exec.Command(program, "-q", file)
	cmd.Dir, cmd.Env = p.dir, environment()
	if err := asServerUser(cmd); err != nil {
		return err
	}
	endWithUs(cmd)
	if p.process, err = launch(cmd); err != nil {
		return fmt.Errorf("pgtest: %s does not start: %w", program, err)
	}
	return p.awaitAnswer()
}

func (p *Pooler) awaitAnswer() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		c, err := pgx.Connect(ctx, p.URL("postgres://postgres@127.0.0.1/postgres"))
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-p.process.gone:
			return fmt.Errorf("pgtest: the pooler ended before it answered; its log says:\n%s", p.logged())
		case <-ctx.Done():
			return fmt.Errorf("pgtest: the pooler did not answer in %v: %w; its log says:\n%s", patience, err, p.logged())
		case <-again.C:
		}
	}
}

func (p *Pooler) logged() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return string(text[max(0, len(text)-4000):])
}

// Stop ends the pooler at once, and with it every connection through it. Stopping a stopped pooler does nothing.
func (p *Pooler) Stop() error {
	if p.process == nil {
		return nil
	}
	running := p.process
	p.process = nil
	if err := running.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("pgtest: stopping the pooler: %w", err)
	}
	<-running.gone
	return nil
}

// Running reports whether the pooler has not ended by itself.
func (p *Pooler) Running() bool {
	select {
	case <-p.process.gone:
		return false
	default:
		return true
	}
}
