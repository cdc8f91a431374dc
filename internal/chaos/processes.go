package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A process is one child of a run, alive or not.
type process struct {
	n     int
	play  string
	cmd   *exec.Cmd
	stdin io.Closer     // open as long as the child shall live
	gone  chan struct{} // closed when it has ended
	asked bool          // it was told to end, one way or the other
}

func (p *process) alive() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

func (p *process) signal(s os.Signal) {
	_ = p.cmd.Process.Signal(s) // it may have ended a moment ago, which is what the signal is about
}

// A fleet is every process a run has started so far. Its methods are for one goroutine.
type fleet struct {
	command []string // runs this program as a child; a part follows
	part    part     // what all parts have in common
	all     []*process
	posts   []post // which are always manned
}

// A post is a part that is given to a new process whenever its last one is gone.
type post struct {
	play   string
	holder *process
}

// man opens so many posts for a part.
func (f *fleet) man(play string, posts int) error {
	for range posts {
		p, err := f.spawn(play)
		if err != nil {
			return err
		}
		f.posts = append(f.posts, post{play: play, holder: p})
	}
	return nil
}

func (f *fleet) spawn(play string) (*process, error) {
	part := f.part
	part.Play, part.N = play, len(f.all)
	text, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("a part cannot be written down: %w", err)
	}
	log, err := os.Create(f.logPath(part.N))
	if err != nil {
		return nil, fmt.Errorf("no log for a child process: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(f.command[0], append(slices.Clone(f.command[1:]), string(text))...)
	cmd.Stdout, cmd.Stderr = log, log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("no pipe to a child process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("a child process does not start: %w", err)
	}
	p := &process{n: part.N, play: play, cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	f.all = append(f.all, p)
	go func() {
		_ = cmd.Wait() // how it ended is read from the process state
		close(p.gone)
	}()
	return p, nil
}

func (f *fleet) logPath(n int) string {
	return filepath.Join(f.part.Dir, fmt.Sprintf("%05d.log", n))
}

// tend gives every post whose process is gone, or was told to go, to a new one.
func (f *fleet) tend() error {
	for i := range f.posts {
		if h := f.posts[i].holder; h.alive() && !h.asked {
			continue
		}
		p, err := f.spawn(f.posts[i].play)
		if err != nil {
			return err
		}
		f.posts[i].holder = p
	}
	return nil
}

// relieve gives the post of a process that lives on, but not as it should, to a new one.
func (f *fleet) relieve(old *process) error {
	for i := range f.posts {
		if f.posts[i].holder != old {
			continue
		}
		p, err := f.spawn(old.play)
		if err != nil {
			return err
		}
		f.posts[i].holder = p
	}
	return nil
}

// close withdraws the posts of a part, so that nobody follows.
func (f *fleet) close(play string) {
	f.posts = slices.DeleteFunc(f.posts, func(p post) bool { return p.play == play })
}

// retire asks every process of a part to end, waits, and tells how many did not and had to be killed.
func (f *fleet) retire(play string, patience time.Duration) int {
	f.close(play)
	for _, p := range f.all {
		if p.play == play && p.alive() {
			p.asked = true
			p.signal(sigCont)
			p.signal(sigTerm)
		}
	}
	deadline := time.After(patience)
	for _, p := range f.all {
		if p.play != play {
			continue
		}
		select {
		case <-p.gone:
		case <-deadline:
			return f.killAll(play)
		}
	}
	return 0
}

// killAll leaves nobody of a part behind; of every part when play is empty.
func (f *fleet) killAll(play string) int {
	killed := 0
	for _, p := range f.all {
		if (play == "" || p.play == play) && p.alive() {
			killed++
			p.asked = true
			p.signal(sigKill)
			<-p.gone
		}
		p.stdin.Close()
	}
	return killed
}

// troubles tells of every process that ended by itself in a way no script asks for.
func (f *fleet) troubles() []string {
	var found []string
	for _, p := range f.all {
		if p.alive() {
			continue
		}
		code := p.cmd.ProcessState.ExitCode()
		if code == exitWell || code == exitTaken || code == -1 && p.asked {
			continue
		}
		text, _ := os.ReadFile(f.logPath(p.n))
		tail := strings.TrimSpace(string(text[max(0, len(text)-1500):]))
		found = append(found, fmt.Sprintf("%s %d ended with %v:\n%s", p.play, p.n, p.cmd.ProcessState, tail))
	}
	return found
}
