package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/internal/release/bill"
)

// A target is a system that the command is built for.
type target struct{ os, arch string }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

// A builder builds the files of one release.
type builder struct {
	repo    repository
	version string
	made    time.Time // the time of all files
	modules *downloader
	temp    string            // for programs that are not packed yet
	files   map[string][]byte // by name
}

// build writes the files of the release that is checked out to a folder in out: an archive and a bill of materials for each target, and their checksums.
func build(r repository, out string) (err error) {
	version, err := checkBuild(r)
	if err != nil {
		return err
	}
	b := &builder{repo: r, version: version, files: map[string][]byte{}}
	if b.made, err = r.committed(); err != nil {
		return err
	}
	if b.modules, err = newDownloader(r); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.modules.close()) }()
	b.temp = filepath.Join(b.modules.cache, "programs")
	for _, t := range targets {
		if err := b.buildTarget(t); err != nil {
			return fmt.Errorf("%s/%s: %w", t.os, t.arch, err)
		}
	}
	b.files["SHA256SUMS"] = checksums(b.files)
	return write(filepath.Join(out, version), b.files)
}

// checkBuild returns the version of the release that is checked out, and refuses to build anything else.
func checkBuild(r repository) (version string, err error) {
	if err := r.checkClean(); err != nil {
		return "", err
	}
	if version, err = r.checkedOut(); err != nil {
		return "", err
	}
	return version, r.checkChangelog(version)
}

func (b *builder) buildTarget(t target) error {
	name := fmt.Sprintf("holdfast_%s_%s_%s", b.version, t.os, t.arch)
	program := filepath.Join(b.temp, name, "holdfast")
	if t.os == "windows" {
		program += ".exe"
	}
	if err := b.compile(t, program); err != nil {
		return err
	}
	parts, err := bill.Read(program)
	if err != nil {
		return err
	}
	if err := parts.Check(b.version); err != nil {
		return err
	}
	contents, err := b.contents(name, program, parts)
	if err != nil {
		return err
	}
	archive, pack := name+".tar.gz", packTar
	if t.os == "windows" {
		archive, pack = name+".zip", packZip
	}
	if b.files[archive], err = pack(contents, b.made); err != nil {
		return err
	}
	if b.files[name+".cdx.json"], err = parts.CycloneDX(b.made); err != nil {
		return err
	}
	fmt.Printf("%-44s %5.1f MB, the program %5.1f MB\n", archive, megabytes(len(b.files[archive])), megabytes(len(contents[0].data)))
	return nil
}

func megabytes(n int) float64 { return float64(n) / 1e6 }

// compile builds a static program without symbols and without paths of this machine. The go command records the version, by the tag, and the commit. Settings
// that would change the program are given their default values.
func (b *builder) compile(t target, program string) error {
	environment := append(slices.Clone(b.modules.environment), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
	_, err := b.repo.in("cmd").run(environment, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", program, "./holdfast")
	return err
}

// contents returns the files of an archive. The program is the first.
func (b *builder) contents(folder, program string, parts *bill.Bill) ([]packed, error) {
	licences, err := b.licences(parts)
	if err != nil {
		return nil, err
	}
	list := []packed{{name: folder + "/" + filepath.Base(program), mode: 0o755}, {name: folder + "/LICENSE", mode: 0o644}, {name: folder + "/README.md", mode: 0o644}}
	for i, from := range []string{program, filepath.Join(b.repo.dir, "LICENSE"), filepath.Join(b.repo.dir, "README.md")} {
		if list[i].data, err = os.ReadFile(from); err != nil {
			return nil, err
		}
	}
	return append(list, packed{name: folder + "/LICENSES-OF-DEPENDENCIES.txt", mode: 0o644, data: licences}), nil
}

// licences returns the licence texts of everything that is compiled into a program: most licences ask for that.
func (b *builder) licences(parts *bill.Bill) ([]byte, error) {
	root, err := b.repo.run(b.modules.environment, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	folders := map[string]string{"Go": root}
	args := []string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}
	for _, m := range parts.Modules {
		args = append(args, m.Path)
	}
	list, err := b.repo.in("cmd").run(b.modules.environment, "go", args...)
	if err != nil {
		return nil, err
	}
	names := []string{"Go"}
	for line := range strings.Lines(list) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path != library && !strings.HasPrefix(path, library+"/") {
			names, folders[path] = append(names, path), dir
		}
	}
	var text strings.Builder
	for _, name := range names {
		if err := appendLicences(&text, name, folders[name]); err != nil {
			return nil, err
		}
	}
	return []byte(text.String()), nil
}

// appendLicences appends the licence files in a folder.
func appendLicences(text *strings.Builder, name, dir string) error {
	entries, err := os.ReadDir(dir) // in the order of their names
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		if e.IsDir() || !slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, func(one string) bool { return strings.HasPrefix(upper, one) }) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		line := strings.Repeat("=", 80)
		fmt.Fprintf(text, "%s\n%s: %s\n%s\n\n%s\n\n", line, name, e.Name(), line, strings.TrimSpace(string(content)))
	}
	if !found {
		return fmt.Errorf("%s has no licence file in %s: find its terms before you release it", name, dir)
	}
	return nil
}

// checksums returns the list that 'sha256sum -c' reads.
func checksums(files map[string][]byte) []byte {
	var list []string
	for name, data := range files {
		sum := sha256.Sum256(data)
		list = append(list, hex.EncodeToString(sum[:])+"  "+name+"\n")
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return []byte(strings.Join(list, ""))
}

// write replaces the folder of a release.
func write(dir string, files map[string][]byte) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%s has the files of the release, with SHA256SUMS\n", dir)
	return nil
}
