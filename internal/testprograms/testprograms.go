// Package testprograms finds the external programs that tests run, or installs them. It never skips a test: if a program is missing and cannot be installed, the test
// fails and says how to install it.
package testprograms

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// A Program is an external program that tests run, and how to install it.
type Program struct {
	Name    string
	Package string // the Debian package
	Else    string // how to install it on other systems
}

// The programs: interpreters for workers and receivers in other languages, Prometheus's checker of rules and a connection pooler; and for the applications a browser, tools that make
// and read PDFs, a client of HTTP, a validator of XML, two proxies, and FFmpeg for videos.
var (
	Python   = Program{"python3", "python3", "macOS: brew install python"}
	Node     = Program{"node", "nodejs", "macOS: brew install node"}
	PHP      = Program{"php", "php-cli", "macOS: brew install php"}
	Promtool = Program{"promtool", "prometheus", "macOS: brew install prometheus"}

	Pgbouncer = Program{"pgbouncer", "pgbouncer", "macOS: brew install pgbouncer"}

	Chromium    = Program{"chromium", "chromium", "macOS: brew install chromium"}
	Npm         = Program{"npm", "npm", "macOS: brew install node"}
	Poppler     = Program{"pdftotext", "poppler-utils", "macOS: brew install poppler"}
	Rsvg        = Program{"rsvg-convert", "librsvg2-bin", "macOS: brew install librsvg"}
	Qpdf        = Program{"qpdf", "qpdf", "macOS: brew install qpdf"}
	Ghostscript = Program{"gs", "ghostscript", "macOS: brew install ghostscript"}
	Curl        = Program{"curl", "curl", "macOS has it"}
	Xmllint     = Program{"xmllint", "libxml2-utils", "macOS has it"}

	FFmpeg = Program{"ffmpeg", "ffmpeg", "macOS: brew install ffmpeg"}

	Tinyproxy  = Program{"tinyproxy", "tinyproxy-bin", "macOS: brew install tinyproxy"}
	Microsocks = Program{"microsocks", "microsocks", "macOS: brew install microsocks"}
	Scrapy     = Program{"scrapy", "python3-scrapy", "macOS: brew install scrapy"} // for make bench-fetchbox only
)

// All lists the programs.
var All = []Program{Python, Node, PHP, Promtool, Pgbouncer, Chromium, Npm, Poppler, Rsvg, Qpdf, Ghostscript, Curl, Xmllint, Tinyproxy, Microsocks, FFmpeg}

// Ensure returns the path of the program. If it is missing, it is installed where that is possible; otherwise the error says how to install it.
func (p Program) Ensure() (string, error) {
	if path, err := p.find(); err == nil {
		return path, nil
	}
	tried := Install(p.Package)
	if path, err := p.find(); err == nil {
		return path, nil
	}
	if tried == nil {
		tried = errors.New("its package does not contain it")
	}
	return "", fmt.Errorf("the tests need %s, which is not in the PATH: %w. Install it (Debian: apt-get install %s; %s)", p.Name, tried, p.Package, p.Else)
}

// find searches the PATH, and then /usr/sbin, where Debian puts the programs of services and which is not in every user's PATH.
func (p Program) find() (string, error) {
	path, err := exec.LookPath(p.Name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + p.Name)
	}
	return path, err
}

// Install installs a Debian package. Concurrent test processes wait for the lock of the package manager. A service in the package is not started.
func Install(name string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("apt-get is not available to install it")
	}
	if os.Getuid() != 0 {
		return errors.New("only root can install it")
	}
	fmt.Fprintf(os.Stderr, "installing %s for the tests, once\n", name)
	defer declineStart("/usr/sbin/policy-rc.d")()
	if _, err := aptGet(apt, "install", "-y", "--no-install-recommends", name); err == nil {
		return nil
	}
	if out, err := aptGet(apt, "update"); err != nil {
		return fmt.Errorf("apt-get failed: %w\n%s", err, out)
	}
	if out, err := aptGet(apt, "install", "-y", "--no-install-recommends", name); err != nil {
		return fmt.Errorf("apt-get failed: %w\n%s", err, out)
	}
	return nil
}

func aptGet(apt string, arguments ...string) ([]byte, error) {
	cmd := exec.Command(apt, append([]string{"-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confold"}, arguments...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return cmd.CombinedOutput()
}

// declineStart makes packages not start their services until undo is called, by Debian's policy-rc.d. An existing file is left alone.
func declineStart(file string) (undo func()) {
	if _, err := os.Stat(file); err == nil {
		return func() {}
	}
	if os.WriteFile(file, []byte("#!/bin/sh\nexit 101\n"), 0o755) != nil {
		return func() {}
	}
	return func() { _ = os.Remove(file) }
}
