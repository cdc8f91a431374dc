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

// A process is a child process of a run, running or ended.
type process struct {
	n     int
	play  string
	cmd   *exec.Cmd
	stdin io.Closer     // the child ends when it is closed
	gone  chan struct{} // closed when it has ended
	asked bool          // the run has killed it or asked it to end
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
	_ = p.cmd.Process.Signal(s) // fails if the process has just ended, which is fine
}

// A fleet holds every process that a run has started so far. It is not safe for concurrent use.
type fleet struct {
	command []string // runs this program as a child; the JSON of a part is added
	part    part     // common to all processes
	all     []*process
	posts   []post // kept filled with a running process
}

// A post is a role that always has one process: tend starts a new one when the last has ended.
type post struct {
	play   string
	holder *process
}

// man starts a number of processes with a role, and a post for each.
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
		return nil, fmt.Errorf("cannot encode the role of a child process: %w", err)
	}
	log, err := os.Create(f.logPath(part.N))
	if err != nil {
		return nil, fmt.Errorf("cannot create the log of a child process: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(f.command[0], append(slices.Clone(f.command[1:]), string(text))...)
	cmd.Stdout, cmd.Stderr = log, log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot create a pipe to a child process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start a child process: %w", err)
	}
	p := &process{n: part.N, play: play, cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	f.all = append(f.all, p)
	go func() {
		_ = cmd.Wait() // the process state has the exit code
		close(p.gone)
	}()
	return p, nil
}

func (f *fleet) logPath(n int) string {
	return filepath.Join(f.part.Dir, fmt.Sprintf("%05d.log", n))
}

// tend starts a new process for every post whose process has ended or was asked to end.
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

// relieve starts a new process for the post of one that is frozen. The frozen process stays in the fleet.
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

// close removes the posts of a role, so that its processes are not replaced.
func (f *fleet) close(play string) {
	f.posts = slices.DeleteFunc(f.posts, func(p post) bool { return p.play == play })
}

// retire asks every process of a role to end and waits. It kills those that have not ended in time and returns their number.
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

// killAll kills the processes of a role, or all processes if role is empty, and returns how many it killed.
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

// unexpectedExits describes every process that failed although neither the run nor a script ended it.
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
