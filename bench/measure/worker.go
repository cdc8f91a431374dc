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

// The words that the two processes exchange, a line each. A worker says ready and waits for go; while it works it says how many
// jobs have ended, or, for pick-up, when a handler started; when its input is closed it stops and says stopped.
const (
	wordReady   = "ready"
	wordGo      = "go"
	wordEnded   = "ended"
	wordStarted = "started"
	wordStopped = "stopped"
)

// beat is how often a worker says how many jobs have ended. It bounds how much later than the last job a run is stopped.
const beat = 5 * time.Millisecond

// A report is what a worker process says about itself when it has stopped.
type report struct {
	CPU  float64
	Idle float64
	Peak float64
}

// A speaker writes whole lines to the process that started this one.
type speaker struct {
	sync.Mutex
	w io.Writer
}

func (s *speaker) say(word string, value any) {
	text, _ := json.Marshal(value)
	s.Lock()
	defer s.Unlock()
	fmt.Fprintln(s.w, word, string(text))
}

// work is the whole life of a worker process. When the process that started it goes away, its input ends and so does it.
func (r run) work(ctx context.Context, c Contender) error {
	out := &speaker{w: os.Stdout}
	var said report
	runtime.GC()
	said.Idle = resident()
	out.say(wordReady, 0)
	in := bufio.NewReader(os.Stdin)
	if line, err := in.ReadString('\n'); err != nil || line != wordGo+"\n" {
		return errors.New("a worker process is started by the benchmark itself: leave -worker out")
	}
	forgetPeak()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		in.ReadString('\n') // nothing comes: it ends with the input
		stop()
	}()
	end, err := profile(r.profile)
	if err != nil {
		return err
	}
	cpu := cpuSeconds()
	err = r.handle(ctx, c, out)
	said.CPU = cpuSeconds() - cpu
	said.Peak = peak()
	end()
	if err != nil {
		return err
	}
	out.say(wordStopped, said)
	return nil
}

// handle works until ctx ends.
func (r run) handle(ctx context.Context, c Contender, out *speaker) error {
	if r.workload == "pickup" {
		return c.Work(ctx, func(int) error {
			out.say(wordStarted, time.Now().UnixNano())
			return nil
		})
	}
	var ended atomic.Int64
	tell := time.NewTicker(beat)
	defer tell.Stop()
	over := make(chan struct{})
	defer close(over)
	go func() {
		for last := int64(0); ; {
			select {
			case <-over:
				return
			case <-tell.C:
			}
			if n := ended.Load(); n != last {
				out.say(wordEnded, n)
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
