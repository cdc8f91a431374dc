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

// How a child process ends. A killed process and one that a script took along end like the shell says: 137.
const (
	exitWell   = 0
	exitBroken = 3 // it could not do its part, which is a finding
	exitTaken  = 137
)

// The parts a child process can play.
const (
	partWorker   = "worker"
	partProducer = "producer"
)

// A part tells a child process what to do. It travels as one argument of the command line.
type part struct {
	Play  string        `json:"play"`
	Store string        `json:"store"`
	Dir   string        `json:"dir"` // where the journals are
	N     int           `json:"n"`   // which process of the run this is
	Seed  uint64        `json:"seed"`
	Lease time.Duration `json:"lease"`
	First holdfast.ID   `json:"first"` // every job of the run comes after it
	// Servers are where the servers listen, for those who go by way of them.
	Servers []string `json:"servers,omitempty"`
}

// Child plays the part a run gave to this process, and ends the process. Who cannot serve leaves that out.
func Child(ctx context.Context, text string, serve Serve) {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: this is not a part to play; run holdfast chaos without a subcommand:", err)
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

// endWithParent waits for the end of standard input, which the parent holds open as long as it lives.
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
	return fmt.Errorf("no part is called %q", p.Play)
}

// openPatiently opens the store, also while its database is down for a while.
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

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
