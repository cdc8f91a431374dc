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
)

// Exit codes of a child process. exitKilled is the code that shells report for SIGKILL; a script that simulates a crash uses it too.
const (
	exitWell   = 0
	exitBroken = 3 // the child failed, which is a finding
	exitTaken  = 137
)

// The roles of child processes.
const (
	partWorker   = "worker"
	partProducer = "producer"
)

// A part tells a child process what to do. The parent passes it as JSON in one command-line argument.
type part struct {
	Play  string        `json:"play"`
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
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: invalid role; run holdfast chaos without a subcommand:", err)
		os.Exit(exitBroken)
	}
	go endWithParent()
	ctx, stop := signal.NotifyContext(ctx, gracefulSignals...)
	defer stop()
	if err := p.play(ctx, serve); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", p.Play, p.N, "ended:", err)
		os.Exit(exitBroken)
	}
	os.Exit(exitWell)
}

// endWithParent ends the process when standard input ends. The parent keeps it open while it lives.
func endWithParent() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(exitWell)
}

func (p part) play(ctx context.Context, serve Serve) error {
	if strings.HasPrefix(p.Play, partServer) {
		return p.serve(ctx, serve)
	}
	s, err := p.reach(ctx)
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
	switch p.Play {
	case partWorker:
		return work(ctx, p, &recorder{Store: s, journal: j})
	case partProber:
		return probe(ctx, p, &recorder{Store: s, journal: j})
	case partNotifier:
		return tell(ctx, p, &recorder{Store: s, journal: j})
	case partScheduler:
		return keepTime(ctx, p, &recorder{Store: s, journal: j})
	case partProducer:
		return produce(ctx, p, s, j)
	case partReporter:
		return report(ctx, p, j)
	}
	return fmt.Errorf("unknown role %q", p.Play)
}

// openPatiently opens the store. It retries for a minute, because the database may be down during a run.
func openPatiently(ctx context.Context, address string) (holdfast.Store, error) {
	deadline := time.Now().Add(time.Minute)
	for {
		s, err := store.Open(ctx, address)
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return s, err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// pause waits for a duration, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
