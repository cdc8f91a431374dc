// Package previous builds the command of the previous release from the history of the repository, for tests that let two releases share a store.
//
// The file COMMIT names the commit of the previous release. A release changes it: see docs/releasing.md.
package previous

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

//go:embed COMMIT
var pinned string

// Commit is the commit of the previous release.
func Commit() string { return strings.TrimSpace(pinned) }

// Command builds the command of the previous release, and returns the path of the program. It is kept in the user's cache folder: only the first call on a
// machine takes longer than a few seconds.
func Command() (string, error) { return build(Commit()) }

func build(commit string) (string, error) {
	repository, err := repository()
	if err != nil {
		return "", err
	}
	if err := checkHistory(repository, commit); err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	source := filepath.Join(cache, "holdfast-previous", commit)
	if err := unpackOnce(repository, commit, source); err != nil {
		return "", fmt.Errorf("previous: the source of the previous release cannot be unpacked to %s: %w", source, err)
	}
	program := filepath.Join(source, "bin", "holdfast")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./holdfast")
	build.Dir = filepath.Join(source, "cmd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("previous: the previous release, commit %s, cannot be built: %w\n%s", commit, err, out)
	}
	return program, nil
}

// repository returns the folder of the repository that the tests run in. This package may be compiled from another folder: in a release, the command's tests
// use it as a module.
func repository() (string, error) {
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", errors.New("previous: the tests build the previous release from the history of the repository, and git does not find it: run them in a clone, with git in the PATH")
	}
	return strings.TrimSpace(string(top)), nil
}

// checkHistory refuses a repository that does not have the commit, such as a shallow clone.
func checkHistory(repository, commit string) error {
	if exec.Command("git", "-C", repository, "cat-file", "-e", commit+"^{commit}").Run() == nil {
		return nil
	}
	return fmt.Errorf("previous: this clone does not have the commit of the previous release, %s (internal/previous/COMMIT): "+
		"get it with 'git fetch --unshallow', or 'git fetch origin %s'", commit, commit)
}

// unpackOnce writes the files of a commit into a folder that does not exist yet. Processes that do so at the same time do not disturb each other: the folder
// gets its name when it is complete.
func unpackOnce(repository, commit, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), ".part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	archive, err := exec.Command("git", "-C", repository, "archive", "--format=tar", commit).Output()
	if err != nil {
		return err
	}
	if err := unpack(tar.NewReader(bytes.NewReader(archive)), part); err != nil {
		return err
	}
	if err := os.Rename(part, dir); err != nil {
		if _, made := os.Stat(dir); made != nil {
			return err
		}
	}
	return nil
}

// unpack writes the files of an archive that git made. os.Root keeps them inside of the folder.
func unpack(files *tar.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = writeEntry(root, h, files)
		}
		if err != nil {
			return err
		}
	}
}

func writeEntry(root *os.Root, h *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(strings.TrimSuffix(h.Name, "/"))
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, os.FileMode(h.Mode)&0o777)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	}
	return nil // the comment with the commit; the repository has no links
}
