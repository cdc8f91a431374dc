package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// binaries are the two programs a server is made of.
type binaries struct{ initdb, postgres string }

// packaged are the folders where packages put the programs without putting them in the PATH.
var packaged = []string{
	"/usr/lib/postgresql/*/bin",            // Debian, Ubuntu
	"/usr/pgsql-*/bin",                     // Fedora and its kin, from the project's own packages
	"/opt/homebrew/opt/postgresql@*/bin",   // macOS
	"/usr/local/opt/postgresql@*/bin",      // macOS on Intel
	"C:/Program Files/PostgreSQL/*/bin",    // Windows
	"/Applications/Postgres.app/*/*/*/bin", // Postgres.app
	"/usr/libexec/postgresql*",             // Alpine
	"/opt/local/lib/postgresql*/bin",       // MacPorts
	"/usr/local/pgsql/bin",                 // from source
}

// Ensure finds the server's programs, and installs them where it can.
func Ensure() (binaries, error) {
	if found, ok := find(); ok {
		return found, nil
	}
	tried := install()
	if found, ok := find(); ok {
		return found, nil
	}
	return binaries{}, fmt.Errorf("pgtest: the tests need PostgreSQL and found none: no initdb and postgres in the PATH or where packages put them, and %w. "+
		"Install it (Debian: apt-get install postgresql; macOS: brew install postgresql@17), put its bin folder in the PATH, "+
		"or set %s to a server on which databases may be created", tried, address)
}

// Postgres is the path of the server's program, for messages.
func (b binaries) Postgres() string { return b.postgres }

func find() (binaries, bool) {
	initdb, err := exec.LookPath("initdb")
	postgres, err2 := exec.LookPath("postgres")
	if err == nil && err2 == nil {
		return binaries{initdb, postgres}, true
	}
	for _, pattern := range packaged {
		dirs, _ := filepath.Glob(pattern)
		slices.SortFunc(dirs, newestFirst)
		for _, dir := range dirs {
			b := binaries{filepath.Join(dir, "initdb"+suffix()), filepath.Join(dir, "postgres"+suffix())}
			if present(b.initdb) && present(b.postgres) {
				return b, true
			}
		}
	}
	return binaries{}, false
}

func suffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

func present(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// newestFirst orders folders by the first number in them, so that 17 comes before 9.
func newestFirst(a, b string) int { return number(b) - number(a) }

func number(path string) int {
	start := strings.IndexAny(path, "0123456789")
	if start < 0 {
		return 0
	}
	end := start
	for end < len(path) && path[end] >= '0' && path[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(path[start:end])
	return n
}

// install gets Debian's package, which would set up a cluster for everyday use unless configured otherwise.
func install() error {
	if os.Getuid() == 0 {
		declineCluster("/etc/postgresql-common")
	}
	if err := testprograms.Install("postgresql"); err != nil {
		return err
	}
	return errors.New("the package was installed without them")
}

func declineCluster(dir string) {
	file := filepath.Join(dir, "createcluster.conf")
	if present(file) || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	os.WriteFile(file, []byte("create_main_cluster = false\n"), 0o644)
}
