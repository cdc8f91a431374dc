package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/internal/release/bill"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// project is a repository in the form of this one: a library, a module that requires it, and a command that requires both.
var project = map[string]string{
	"LICENSE": "terms\n", "README.md": "# Project\n", ".gitignore": "/dist/\n",
	"CHANGELOG.md":           "# Changelog\n\n## v0.1.0 - 2026-11-19\n\nThe first release.\n",
	"go.mod":                 "module " + library + "\n\ngo 1.26.0\n",
	"library.go":             "package holdfast\n\nconst Name = \"project\"\n",
	"telemetry/go.mod":       "module " + library + "/telemetry\n\ngo 1.26.0\n\nrequire " + library + " v0.0.0\n\nreplace " + library + " => ..\n",
	"telemetry/telemetry.go": "package telemetry\n\nimport \"" + library + "\"\n\nconst Name = \"telemetry of \" + holdfast.Name\n",
	"cmd/go.mod": "module " + library + "/cmd\n\ngo 1.26.0\n\nrequire (\n\t" + library + " v0.0.0\n\t" + library + "/telemetry v0.0.0\n)\n\nreplace (\n\t" +
		library + " => ..\n\t" + library + "/telemetry => ../telemetry\n)\n",
	"cmd/holdfast/main.go": "package main\n\nimport \"" + library + "/telemetry\"\n\nfunc main() { println(telemetry.Name) }\n",
}

// newProject commits the project, with other contents for some files.
func newProject(t *testing.T, other map[string]string) repository {
	t.Helper()
	files := maps.Clone(project)
	maps.Copy(files, other)
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		ok(t, os.MkdirAll(filepath.Dir(path), 0o755))
		ok(t, os.WriteFile(path, []byte(text), 0o644))
	}
	r := repository{dir}
	for _, line := range []string{"init --quiet", "config user.name ada", "config user.email ada@example.org", "add .", "commit --quiet --message all"} {
		_, err := r.git(strings.Fields(line)...)
		ok(t, err)
	}
	return r
}

func expectRefusal(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("error %v, want one that says %q", err, says)
	}
}

func TestTagsAreRefusedWithoutWhatAReleaseNeeds(t *testing.T) {
	expectRefusal(t, makeTags(newProject(t, nil), "0.1"), "is not a version")
	expectRefusal(t, makeTags(newProject(t, nil), "v0.2.0"), "CHANGELOG.md has no section")
	expectRefusal(t, makeTags(newProject(t, map[string]string{"CHANGELOG.md": "## v0.1.0 - unreleased\n"}), "v0.1.0"), "2026-01-31")
	changed := newProject(t, nil)
	ok(t, os.WriteFile(filepath.Join(changed.dir, "new.go"), []byte("package holdfast\n"), 0o644))
	expectRefusal(t, makeTags(changed, "v0.1.0"), "new.go")
	tagged := newProject(t, nil)
	_, err := tagged.git("tag", "telemetry/v0.1.0")
	ok(t, err)
	expectRefusal(t, makeTags(tagged, "v0.1.0"), "telemetry/v0.1.0")
}

func TestABuildIsRefusedWithoutWhatAReleaseNeeds(t *testing.T) {
	r := newProject(t, nil)
	expectRefusal(t, build(r, t.TempDir()), "make tag VERSION=")
	_, err := r.git("tag", "v0.1.0")
	ok(t, err)
	expectRefusal(t, build(r, t.TempDir()), "cmd/v0.1.0")
	for _, tag := range []string{"cmd/v0.1.0", "telemetry/v0.1.0"} {
		_, err := r.git("tag", tag)
		ok(t, err)
	}
	expectRefusal(t, build(r, t.TempDir()), "replace line")
	ok(t, os.WriteFile(filepath.Join(r.dir, "README.md"), []byte("# Changed\n"), 0o644))
	expectRefusal(t, build(r, t.TempDir()), "README.md")
}

// Both clones build the files of the release on their own.
func TestTheSameCommitGivesTheSameFiles(t *testing.T) {
	all := targets
	targets = []target{{runtime.GOOS, runtime.GOARCH}, {"windows", "amd64"}}
	defer func() { targets = all }()
	r := newProject(t, nil)
	before, err := r.git("rev-parse", "HEAD")
	ok(t, err)
	ok(t, makeTags(r, "v0.1.0"))
	after, err := r.git("rev-parse", "HEAD")
	ok(t, err)
	if before != after {
		t.Errorf("making tags moved the branch from %s to %s", before, after)
	}
	var built [2]map[string]string
	for i := range built {
		clone, out := repository{t.TempDir()}, t.TempDir()
		_, err := r.git("clone", "--quiet", "--branch", "v0.1.0", r.dir, clone.dir)
		ok(t, err)
		ok(t, build(clone, out))
		built[i] = readFiles(t, filepath.Join(out, "v0.1.0"))
	}
	if !maps.Equal(built[0], built[1]) || len(built[0]) != 5 {
		t.Errorf("two builds differ: %v and %v", slices.Sorted(maps.Keys(built[0])), slices.Sorted(maps.Keys(built[1])))
	}
	name := "holdfast_v0.1.0_" + runtime.GOOS + "_" + runtime.GOARCH
	if sums := built[0]["SHA256SUMS"]; strings.Count(sums, "\n") != 4 || !strings.Contains(sums, "  "+name+".cdx.json\n") {
		t.Errorf("SHA256SUMS:\n%s", sums)
	}
	expectProgram(t, built[0][name+".tar.gz"], name)
}

// expectProgram unpacks the program of an archive, and expects that it is of the release.
func expectProgram(t *testing.T, archive, name string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "holdfast.exe")
	for _, f := range untar(t, archive) {
		if strings.HasPrefix(f.name, name+"/holdfast") {
			ok(t, os.WriteFile(program, f.data, f.mode))
		}
		if strings.HasSuffix(f.name, "DEPENDENCIES.txt") && !bytes.Contains(f.data, []byte("Redistribution and use in source and binary forms")) {
			t.Errorf("the archive has no text of the licence of Go:\n%s", f.data)
		}
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	ok(t, err)
	if string(out) != "telemetry of project\n" {
		t.Errorf("the program prints %q", out)
	}
	parts, err := bill.Read(program)
	ok(t, err)
	ok(t, parts.Check("v0.1.0"))
	if len(parts.Modules) != 2 || parts.Modules[0].Path != library || parts.Modules[0].Version != "v0.1.0" {
		t.Errorf("the program contains %v", parts.Modules)
	}
}

func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		ok(t, err)
		files[e.Name()] = string(data)
	}
	return files
}

func untar(t *testing.T, archive string) (files []packed) {
	t.Helper()
	plain, err := gzip.NewReader(strings.NewReader(archive))
	ok(t, err)
	for tape := tar.NewReader(plain); ; {
		h, err := tape.Next()
		if err == io.EOF {
			return files
		}
		ok(t, err)
		data, err := io.ReadAll(tape)
		ok(t, err)
		files = append(files, packed{h.Name, h.FileInfo().Mode(), data})
	}
}

func TestAnArchiveHasTheFilesWithTheirModesAndOneTime(t *testing.T) {
	at := time.Date(2026, 11, 19, 1, 2, 4, 0, time.UTC)
	files := []packed{{"a/program", 0o755, bytes.Repeat([]byte("x"), 1000)}, {"a/LICENSE", 0o644, []byte("terms")}}
	tape, err := packTar(files, at)
	ok(t, err)
	equal := func(a, b packed) bool { return a.name == b.name && a.mode == b.mode && bytes.Equal(a.data, b.data) }
	if got := untar(t, string(tape)); !slices.EqualFunc(got, files, equal) {
		t.Errorf("the tar archive has %v", got)
	}
	box, err := packZip(files, at)
	ok(t, err)
	r, err := zip.NewReader(bytes.NewReader(box), int64(len(box)))
	ok(t, err)
	for i, f := range r.File {
		in, err := f.Open()
		ok(t, err)
		data, err := io.ReadAll(in)
		ok(t, err)
		if !equal(packed{f.Name, f.Mode(), data}, files[i]) || !f.Modified.Equal(at) {
			t.Errorf("the zip archive has %s, %v, of %v", f.Name, f.Mode(), f.Modified)
		}
	}
}
