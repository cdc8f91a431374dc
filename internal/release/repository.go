package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// library is the path of the root module. The paths of the other modules begin with it.
const library = "github.com/holdfastdev/holdfast"

// versions are those of SemVer that Go accepts as tags, without build metadata.
var versions = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// A repository is a clone of this project.
type repository struct{ dir string }

func openRepository(dir string) (repository, error) {
	top, err := repository{dir}.git("rev-parse", "--show-toplevel")
	return repository{top}, err
}

// git runs a git command and returns what it printed, without the last line break.
func (r repository) git(args ...string) (string, error) { return r.run(nil, "git", args...) }

func (r repository) run(environment []string, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), environment...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}

// in returns the same repository, for commands that run in a folder of it.
func (r repository) in(folder string) repository { return repository{filepath.Join(r.dir, folder)} }

// checkClean refuses a working tree with changes, because no other clone has them.
func (r repository) checkClean() error {
	changes, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("the working tree has changes, and a release is made of a commit: commit or remove them\n%s", changes)
	}
	return nil
}

// checkChangelog refuses a release that CHANGELOG.md does not describe.
func (r repository) checkChangelog(version string) error {
	text, err := os.ReadFile(filepath.Join(r.dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if heading, found := strings.CutPrefix(strings.TrimSpace(line), "## "+version+" - "); found {
			if _, err := time.Parse(time.DateOnly, heading); err != nil {
				return fmt.Errorf("CHANGELOG.md says %q where the date of %s belongs: write it as 2026-01-31", heading, version)
			}
			return nil
		}
	}
	return fmt.Errorf("CHANGELOG.md has no section of this release: add a line '## %s - DATE', and below it what the release brings", version)
}

// A module is a module of the repository that is released: a folder, "." for the library.
type module string

// tag is the name under which the go command looks for a version of the module.
func (m module) tag(version string) string {
	if m == "." {
		return version
	}
	return string(m) + "/" + version
}

func (m module) path() string {
	if m == "." {
		return library
	}
	return library + "/" + string(m)
}

// modules returns the modules that are released: the library, the command, and the modules of this repository that the command requires.
func (r repository) modules() ([]module, error) {
	requirements, err := r.requirements("cmd")
	if err != nil {
		return nil, err
	}
	found := []module{".", "cmd"}
	for _, one := range requirements {
		if folder, ours := strings.CutPrefix(one.Path, library+"/"); ours {
			found = append(found, module(folder))
		}
	}
	slices.Sort(found)
	return found, nil
}

// A requirement is a line of a go.mod.
type requirement struct{ Path, Version string }

func (r repository) requirements(folder string) ([]requirement, error) {
	text, err := r.in(folder).run(nil, "go", "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var file struct{ Require []requirement }
	err = json.Unmarshal([]byte(text), &file)
	return file.Require, err
}

// checkedOut returns the version of the release that is checked out. It refuses a commit without the tags of all modules.
func (r repository) checkedOut() (string, error) {
	list, err := r.git("tag", "--points-at", "HEAD")
	if err != nil {
		return "", err
	}
	tags := strings.Fields(list)
	at := slices.IndexFunc(tags, versions.MatchString)
	if at < 0 {
		return "", errors.New("the commit that is checked out has no tag of a release, such as v0.1.0: make it with 'make tag VERSION=v0.1.0', and check it out with 'git checkout v0.1.0'")
	}
	version := tags[at]
	modules, err := r.modules()
	if err != nil {
		return "", err
	}
	for _, m := range modules {
		if !slices.Contains(tags, m.tag(version)) {
			return "", fmt.Errorf("the commit has the tag %s and lacks the tag %s of the module in %s: 'make tag' makes all of them", version, m.tag(version), m)
		}
	}
	return version, nil
}

// committed returns when the commit that is checked out was made. All files of the release have this time.
func (r repository) committed() (time.Time, error) {
	text, err := r.git("log", "-1", "--format=%cI")
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.UTC(), err
}
