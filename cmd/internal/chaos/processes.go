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
	role  string
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
	command []string  // runs this program as a child; the JSON of a childSpec is added
	spec    childSpec // common to all processes
	all     []*process
	slots   []roleSlot // kept filled with a running process
}

// A roleSlot is a role that always has one process: refill starts a new one when the last has ended.
type roleSlot struct {
	role    string
	process *process
}

// start starts a number of processes with a role, and a slot for each.
func (f *fleet) start(role string, n int) error {
	for range n {
		p, err := f.spawn(role)
		if err != nil {
			return err
		}
		f.slots = append(f.slots, roleSlot{role: role, process: p})
	}
	return nil
}

func (f *fleet) spawn(role string) (*process, error) {
	spec := f.spec
	spec.Role, spec.N = role, len(f.all)
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the role of a child process: %w", err)
	}
	log, err := os.Create(f.logPath(spec.N))
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
	p := &process{n: spec.N, role: role, cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	f.all = append(f.all, p)
	go func() {
		_ = cmd.Wait() // the process state has the exit code
		close(p.gone)
	}()
	return p, nil
}

func (f *fleet) logPath(n int) string {
	return filepath.Join(f.spec.Dir, fmt.Sprintf("%05d.log", n))
}

// refill starts a new process for every slot whose process has ended or was asked to end.
func (f *fleet) refill() error {
	for i := range f.slots {
		if h := f.slots[i].process; h.alive() && !h.asked {
			continue
		}
		p, err := f.spawn(f.slots[i].role)
		if err != nil {
			return err
		}
		f.slots[i].process = p
	}
	return nil
}

// replace starts a new process for the slot of one that is frozen. The frozen process stays in the fleet.
func (f *fleet) replace(old *process) error {
	for i := range f.slots {
		if f.slots[i].process != old {
			continue
		}
		p, err := f.spawn(old.role)
		if err != nil {
			return err
		}
		f.slots[i].process = p
	}
	return nil
}

// stopRefilling removes the slots of a role, so that its processes are not replaced.
func (f *fleet) stopRefilling(role string) {
	f.slots = slices.DeleteFunc(f.slots, func(p roleSlot) bool { return p.role == role })
}

// stop asks every process of a role to end and waits. It kills those that have not ended in time and returns their number.
func (f *fleet) stop(role string, patience time.Duration) int {
	f.stopRefilling(role)
	for _, p := range f.all {
		if p.role == role && p.alive() {
			p.asked = true
			p.signal(sigCont)
			p.signal(sigTerm)
		}
	}
	deadline := time.After(patience)
	for _, p := range f.all {
		if p.role != role {
			continue
		}
		select {
		case <-p.gone:
		case <-deadline:
			return f.killAll(role)
		}
	}
	return 0
}

// killAll kills the processes of a role, or all processes if role is empty, and returns how many it killed.
func (f *fleet) killAll(role string) int {
	killed := 0
	for _, p := range f.all {
		if (role == "" || p.role == role) && p.alive() {
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
func (f *fleet) unexpectedExits() []string {
	var found []string
	for _, p := range f.all {
		if p.alive() {
			continue
		}
		code := p.cmd.ProcessState.ExitCode()
		if code == exitOK || code == exitKilled || code == -1 && p.asked {
			continue
		}
		text, _ := os.ReadFile(f.logPath(p.n))
		tail := strings.TrimSpace(string(text[max(0, len(text)-1500):]))
		found = append(found, fmt.Sprintf("%s %d ended with %v:\n%s", p.role, p.n, p.cmd.ProcessState, tail))
	}
	return found
}
