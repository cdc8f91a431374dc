package measure

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The words that the two processes exchange, one per line. A worker prints ready and waits for go. While it works it prints how many jobs have ended or, for pick-up, when a
// handler started. When its input is closed it stops and prints stopped.
const (
	wordReady   = "ready"
	wordGo      = "go"
	wordEnded   = "ended"
	wordStarted = "started"
	wordStopped = "stopped"
)

// progressInterval is how often a worker prints how many jobs have ended. A run is stopped at most this much later than its last job.
const progressInterval = 5 * time.Millisecond

// A workerUsage is the CPU time and memory of a worker process, which it prints when it has stopped.
type workerUsage struct {
	CPU  float64
	Idle float64
	Peak float64
}

// A lineWriter writes whole lines to the parent process.
type lineWriter struct {
	sync.Mutex
	w io.Writer
}

func (s *lineWriter) print(word string, value any) {
	text, _ := json.Marshal(value)
	s.Lock()
	defer s.Unlock()
	fmt.Fprintln(s.w, word, string(text))
}

// work runs a worker process. When its parent process ends, its input ends and the worker stops.
func (r run) work(ctx context.Context, c Contender) error {
	out := &lineWriter{w: os.Stdout}
	var usage workerUsage
	runtime.GC()
	usage.Idle = resident()
	out.print(wordReady, 0)
	in := bufio.NewReader(os.Stdin)
	if line, err := in.ReadString('\n'); err != nil || line != wordGo+"\n" {
		return errors.New("only the benchmark starts worker processes: leave out -worker")
	}
	forgetPeak()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		in.ReadString('\n') // returns at the end of the input
		stop()
	}()
	end, err := profile(r.profile)
	if err != nil {
		return err
	}
	cpu := cpuSeconds()
	err = r.handle(ctx, c, out)
	usage.CPU = cpuSeconds() - cpu
	usage.Peak = peak()
	end()
	if err != nil {
		return err
	}
	out.print(wordStopped, usage)
	return nil
}

// handle works until ctx ends.
func (r run) handle(ctx context.Context, c Contender, out *lineWriter) error {
	if r.workload == "pickup" {
		return c.Work(ctx, func(int) error {
			out.print(wordStarted, time.Now().UnixNano())
			return nil
		})
	}
	var ended atomic.Int64
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	over := make(chan struct{})
	defer close(over)
	go func() {
		for last := int64(0); ; {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			if n := ended.Load(); n != last {
				out.print(wordEnded, n)
				last = n
			}
		}
	}()
	failing := r.workload == "failure"
	return c.Work(ctx, func(attempt int) error {
		if failing && attempt == 1 {
			return Failed
		}
		ended.Add(1)
		return nil
	})
}
