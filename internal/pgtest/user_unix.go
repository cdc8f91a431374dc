//go:build unix

package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// serverUser is who the server runs as when we are root, which PostgreSQL refuses to be.
func serverUser() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("pgtest: PostgreSQL does not run as root and there is no user postgres or nobody: add one of them")
}

func asServerUser(cmd *exec.Cmd) error {
	// A group of its own keeps a Ctrl-C at the terminal from stopping the server before the tests that use it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return nil
	}
	credential, err := serverUser()
	cmd.SysProcAttr.Credential = credential
	return err
}

func handOver(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := serverUser()
	if err != nil {
		return err
	}
	return os.Chown(dir, int(u.Uid), int(u.Gid))
}

// end asks for PostgreSQL's fast shutdown, or for its immediate one.
func end(p *os.Process, immediate bool) error {
	if immediate {
		return p.Signal(syscall.SIGQUIT)
	}
	return p.Signal(syscall.SIGINT)
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
