package browser

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// judge is the version of axe-core that pages are judged by. It is somebody else's program under its own licence: it is loaded for tests, and never part of
// anything here.
const judge = "axe-core@4.10.3"

// axe is the judge's text, loaded once and then kept among the user's cached files.
var axe = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no place to keep %s: %w", judge, err)
	}
	kept := filepath.Join(cache, "holdfast", judge+".js")
	if text, err := os.ReadFile(kept); err == nil {
		return string(text), nil
	}
	text, err := load()
	if err != nil {
		return "", fmt.Errorf("the tests need %s and could not load it with npm: %w. Check that the package registry can be reached, or put its axe.min.js at %s", judge, err, kept)
	}
	err = os.MkdirAll(filepath.Dir(kept), 0o755)
	if err == nil {
		err = os.WriteFile(kept+".part", text, 0o644)
	}
	if err == nil {
		err = os.Rename(kept+".part", kept)
	}
	return string(text), err
})

func load() ([]byte, error) {
	program, err := testprograms.Npm.Ensure()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-axe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(program, "pack", "--silent", judge)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	packs, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packs) != 1 {
		return nil, errors.New("npm pack made no package")
	}
	return unpack(packs[0], "package/axe.min.js")
}

// unpack reads one file of a package.
func unpack(pack, name string) ([]byte, error) {
	file, err := os.Open(pack)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	for entries := tar.NewReader(unzipped); ; {
		entry, err := entries.Next()
		if err != nil {
			return nil, fmt.Errorf("%s is not in the package: %w", name, err)
		}
		if entry.Name == name {
			return io.ReadAll(entries)
		}
	}
}

// Barriers are what keeps people from using the page as it is now, by the rules of WCAG 2.2 AA and good practice: what, and where.
func (p *Page) Barriers() []string {
	p.t.Helper()
	text, err := axe()
	fatal(p.t, err, "no judge")
	Eval[bool](p, text+"\n;true")
	return Eval[[]string](p, `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join("; ")))`)
}
