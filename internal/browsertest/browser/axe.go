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

// axeVersion is the version of axe-core, which checks the accessibility of pages. It is a third-party program with its own licence: tests download it, and it is not part of
// this repository.
const axeVersion = "axe-core@4.10.3"

// axe returns the source of axe-core. It is downloaded once and then cached in the user's cache folder.
var axe = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no cache folder for %s: %w", axeVersion, err)
	}
	cached := filepath.Join(cache, "holdfast", axeVersion+".js")
	if text, err := os.ReadFile(cached); err == nil {
		return string(text), nil
	}
	text, err := download()
	if err != nil {
		return "", fmt.Errorf("the tests need %s and cannot download it with npm: %w. Check that the package registry can be reached, or put its axe.min.js at %s", axeVersion, err, cached)
	}
	err = os.MkdirAll(filepath.Dir(cached), 0o755)
	if err == nil {
		err = os.WriteFile(cached+".part", text, 0o644)
	}
	if err == nil {
		err = os.Rename(cached+".part", cached)
	}
	return string(text), err
})

func download() ([]byte, error) {
	program, err := testprograms.Npm.Ensure()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-axe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(program, "pack", "--silent", axeVersion)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	packs, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packs) != 1 {
		return nil, errors.New("npm pack created no package")
	}
	return unpack(packs[0], "package/axe.min.js")
}

// unpack returns one file of a package.
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

// Barriers returns the accessibility violations of the page in its current state, by the rules of axe-core (WCAG 2.2 AA and best practices): the rule and the elements.
func (p *Page) Barriers() []string {
	p.t.Helper()
	text, err := axe()
	fatal(p.t, err, "axe-core is not available")
	Eval[bool](p, text+"\n;true")
	return Eval[[]string](p, `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join("; ")))`)
}
