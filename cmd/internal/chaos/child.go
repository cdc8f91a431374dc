package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// Exit codes of a child process. exitKilled is the code that shells report for SIGKILL; a script that simulates a crash uses it too.
const (
	exitOK     = 0
	exitFailed = 3 // the child failed, which is a finding
	exitKilled = 137
)

// The roles of child processes.
const (
	roleWorker   = "worker"
	roleProducer = "producer"
)

// A childSpec tells a child process what to do. The parent passes it as JSON in one command-line argument.
type childSpec struct {
	Role  string        `json:"play"`
	Store string        `json:"store"`
	Dir   string        `json:"dir"` // of the journals
	N     int           `json:"n"`   // number of the process in the run
	Seed  uint64        `json:"seed"`
	Lease time.Duration `json:"lease"`
	First holdfast.ID   `json:"first"` // the ids of all jobs of the run are greater
	// Servers are the addresses of the servers, for processes that use the store through them.
	Servers []string `json:"servers,omitempty"`
}

// Child runs the role that a run gave to this process, and ends the process. serve may be nil in a program that cannot serve.
func Child(ctx context.Context, text string, serve Serve) {
	var p childSpec
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: invalid role; run the command chaos without a subcommand:", err)
		os.Exit(exitFailed)
	}
	go endWithParent()
	ctx, stop := signal.NotifyContext(ctx, gracefulSignals...)
	defer stop()
	if err := p.run(ctx, serve); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", p.Role, p.N, "ended:", err)
		os.Exit(exitFailed)
	}
	os.Exit(exitOK)
}

// endWithParent ends the process when standard input ends. The parent keeps it open while it lives.
func endWithParent() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(exitOK)
}

func (p childSpec) run(ctx context.Context, serve Serve) error {
	if strings.HasPrefix(p.Role, roleServer) {
		return p.serve(ctx, serve)
	}
	s, err := p.openStore(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	j, err := openJournal(journalPath(p.Dir, p.N))
	if err != nil {
		return err
	}
	switch p.Role {
	case roleWorker:
		return runWorker(ctx, p, &recorder{Store: s, journal: j})
	case roleProber:
		return runProber(ctx, p, &recorder{Store: s, journal: j})
	case roleNotifier:
		return runNotifier(ctx, p, &recorder{Store: s, journal: j})
	case roleScheduler:
		return runScheduler(ctx, p, &recorder{Store: s, journal: j})
	case roleBookkeeper:
		return runBookkeeper(ctx, p, s)
	case roleProducer:
		return runProducer(ctx, p, s, j)
	case roleReporter:
		return runReporter(ctx, p, j)
	}
	return fmt.Errorf("unknown role %q", p.Role)
}

// openWithRetry opens the store. It retries for a minute, because the database may be down during a run.
func openWithRetry(ctx context.Context, address string) (store.Store, error) {
	deadline := time.Now().Add(time.Minute)
	for {
		s, err := anystore.Open(ctx, address)
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return s, err
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// sleep waits for a duration, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
