package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// A downloader is the environment of go commands that take the modules of this project from a local repository, as they are tagged there, and all others as
// configured. So a release can be built and looked at before it is published, from the same modules. Modules go into a cache of its own: a version that is
// not published yet must not stay in the user's.
type downloader struct {
	cache       string
	environment []string
}

func newDownloader(r repository) (*downloader, error) {
	configured, err := r.run(nil, "go", "env", "GOPROXY", "GOSUMDB", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(configured, "\n")
	cache, err := os.MkdirTemp("", "holdfast-release-")
	if err != nil {
		return nil, err
	}
	settings, _ := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT")) // usually missing
	return &downloader{cache, []string{
		"GOENV=off", "GOWORK=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=" + runtime.Version(),
		"GOMODCACHE=" + cache,
		"GOPROXY=" + fileURL(filepath.Join(lines[2], "cache", "download")) + "," + lines[0],
		"GOSUMDB=" + lines[1],
		"GOPRIVATE=" + library, "GONOPROXY=" + library, "GONOSUMDB=" + library,
		fmt.Sprintf("GIT_CONFIG_COUNT=%d", settings+1),
		fmt.Sprintf("GIT_CONFIG_KEY_%d=url.%s.insteadOf", settings, fileURL(r.dir)),
		fmt.Sprintf("GIT_CONFIG_VALUE_%d=https://%s", settings, library),
	}}, nil
}

func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive of Windows
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

func (d *downloader) close() error { return os.RemoveAll(d.cache) }
