package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// makeTags makes the release commit, a child of the commit that is checked out, and its tags, one for each module. In the repository the modules find each
// other by replace lines. Users of a module do not have these, and 'go install' refuses a command that has them. So in the release commit modules require
// each other's version, and the command has no replace lines.
//
// All of it happens in a temporary clone. The repository gets the commit and the tags when they are complete.
func makeTags(r repository, version string) (err error) {
	if err := checkNew(r, version); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "holdfast-tag-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := r.git("clone", "--quiet", "--no-hardlinks", r.dir, dir); err != nil {
		return err
	}
	clone := repository{dir}
	head, err := r.git("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if _, err := clone.git("checkout", "--quiet", "--detach", head); err != nil {
		return err
	}
	modules, err := clone.modules()
	if err != nil {
		return err
	}
	if err := commitRelease(r, clone, modules, version); err != nil {
		return err
	}
	var tags []string
	refs := []string{"fetch", "--quiet", "--no-tags", dir}
	for _, m := range modules {
		tags = append(tags, m.tag(version))
		refs = append(refs, "refs/tags/"+m.tag(version)+":refs/tags/"+m.tag(version))
	}
	if _, err := r.git(refs...); err != nil {
		return err
	}
	fmt.Printf("made the release commit and its tags. Build the files with:\n  git checkout %s && make release\nand publish the release with:\n  git push origin %s\n", version, strings.Join(tags, " "))
	return nil
}

// checkNew refuses a version that cannot become a release here.
func checkNew(r repository, version string) error {
	if !versions.MatchString(version) {
		return fmt.Errorf("%q is not a version such as v0.1.0 or v0.2.0-rc.1", version)
	}
	if existing, err := r.git("tag", "--list", version, "*/"+version); err != nil || existing != "" {
		return errors.Join(err, fmt.Errorf("there are tags of %s, and a release never changes: choose the next version\n%s", version, existing))
	}
	return errors.Join(r.checkClean(), r.checkChangelog(version))
}

// commitRelease commits the go.mod and go.sum files of a release, with its tags.
func commitRelease(r, clone repository, modules []module, version string) error {
	if err := requireVersion(clone, modules, version); err != nil {
		return err
	}
	sign, err := signature(r)
	if err != nil {
		return err
	}
	commit := func(options ...string) error {
		_, err := clone.git("add", "--all")
		if err == nil {
			_, err = clone.run(sign, "git", append([]string{"commit", "--quiet", "--no-verify", "--message", "Release " + version}, options...)...)
		}
		for _, m := range modules {
			if err == nil {
				_, err = clone.run(sign, "git", "tag", "--force", "--annotate", "--message", m.path()+" "+version, m.tag(version))
			}
		}
		return err
	}
	if err := commit(); err != nil {
		return err
	}
	// The go.sum of the command has the checksums of the other modules, whose contents it does not change: the tags move to a commit that has it.
	if err := sumCommand(clone); err != nil {
		return err
	}
	return commit("--amend")
}

// signature returns the environment in which git commits as the user of the repository, at the time of the commit that is checked out: the release commit of a
// commit is always the same.
func signature(r repository) ([]string, error) {
	at, err := r.git("log", "-1", "--format=%cI")
	if err != nil {
		return nil, err
	}
	var user [2]string
	for i, setting := range []string{"user.name", "user.email"} {
		if user[i], err = r.git("config", setting); err != nil {
			return nil, fmt.Errorf("git has no %s to commit with: %w", setting, err)
		}
	}
	return []string{"GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at, "GIT_AUTHOR_NAME=" + user[0], "GIT_COMMITTER_NAME=" + user[0],
		"GIT_AUTHOR_EMAIL=" + user[1], "GIT_COMMITTER_EMAIL=" + user[1]}, nil
}

// requireVersion writes the version of the released modules into every go.mod that requires them, and removes the replace lines of the command.
func requireVersion(r repository, modules []module, version string) error {
	files, err := r.git("ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return err
	}
	for _, file := range strings.Fields(files) {
		folder := path.Dir(file)
		requirements, err := r.requirements(folder)
		if err != nil {
			return err
		}
		edit := []string{"mod", "edit"}
		for _, m := range modules {
			if slices.ContainsFunc(requirements, func(one requirement) bool { return one.Path == m.path() }) {
				edit = append(edit, "-require="+m.path()+"@"+version)
				if folder == "cmd" {
					edit = append(edit, "-dropreplace="+m.path())
				}
			}
		}
		if len(edit) > 2 {
			if _, err := r.in(folder).run(nil, "go", edit...); err != nil {
				return err
			}
		}
	}
	return nil
}

// sumCommand writes the go.sum of the command.
func sumCommand(r repository) (err error) {
	modules, err := newDownloader(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, modules.close()) }()
	_, err = r.in("cmd").run(modules.environment, "go", "mod", "tidy")
	return err
}
