package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// prefix begins the name of every temporary server folder; the process that made it follows.
const prefix = "holdfast-pg-"

// temporaryDir makes a folder that tells whose it is, after removing those of processes that are gone. A server that
// still runs without its folder ends itself within a minute, so no process has to be killed by a process id that may
// belong to another process by now.
func temporaryDir() (string, error) {
	removeLeftovers(os.TempDir())
	dir, err := os.MkdirTemp("", prefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", fmt.Errorf("pgtest: no temporary folder for the server: %w", err)
	}
	return dir, nil
}

func removeLeftovers(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, prefix+"*-*"))
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if pid, err := strconv.Atoi(owner); err == nil && !alive(pid) {
			os.RemoveAll(dir)
		}
	}
}
