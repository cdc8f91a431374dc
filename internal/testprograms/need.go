// Package testprograms finds the programs of others that tests run, or installs them. It never skips a test: without a program the test fails and says what is
// missing.
package testprograms

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// A Program is one that tests run, and how to get it.
type Program struct {
	Name    string
	Package string // Debian's
	Else    string // what to do elsewhere
}

// The programs: two languages in which workers are written, Prometheus's own judge of rules, a connection pooler; and for the applications a browser, what makes and reads PDFs, and a
// judge of XML.
var (
	Python   = Program{"python3", "python3", "macOS: brew install python"}
	Node     = Program{"node", "nodejs", "macOS: brew install node"}
	Promtool = Program{"promtool", "prometheus", "macOS: brew install prometheus"}

	Pgbouncer = Program{"pgbouncer", "pgbouncer", "macOS: brew install pgbouncer"}

	Chromium    = Program{"chromium", "chromium", "macOS: brew install chromium"}
	Npm         = Program{"npm", "npm", "macOS: brew install node"}
	Poppler     = Program{"pdftotext", "poppler-utils", "macOS: brew install poppler"}
	Rsvg        = Program{"rsvg-convert", "librsvg2-bin", "macOS: brew install librsvg"}
	Qpdf        = Program{"qpdf", "qpdf", "macOS: brew install qpdf"}
	Ghostscript = Program{"gs", "ghostscript", "macOS: brew install ghostscript"}
	Xmllint     = Program{"xmllint", "libxml2-utils", "macOS has it"}
)

// All of them.
var All = []Program{Python, Node, Promtool, Pgbouncer, Chromium, Npm, Poppler, Rsvg, Qpdf, Ghostscript, Xmllint}

// Ensure answers with the program's path. It installs what is missing if it may, and says what to do if it may not.
func (p Program) Ensure() (string, error) {
	if path, err := p.find(); err == nil {
		return path, nil
	}
	tried := Install(p.Package)
	if path, err := p.find(); err == nil {
		return path, nil
	}
	if tried == nil {
		tried = errors.New("the package was installed without it")
	}
	return "", fmt.Errorf("the tests need %s and found none in the PATH, and %w. Install it (Debian: apt-get install %s; %s)", p.Name, tried, p.Package, p.Else)
}

// find looks in the PATH, and then where Debian puts the programs of services, which is not in everybody's PATH.
func (p Program) find() (string, error) {
	path, err := exec.LookPath(p.Name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + p.Name)
	}
	return path, err
}

// Install gets a package of Debian's. Test processes that arrive together wait for each other at the package manager's own lock. A package may come
// with a service, which nobody asked for here, so it is not started.
func Install(name string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("there is no apt-get to install it with")
	}
	if os.Getuid() != 0 {
		return errors.New("only root may install it")
	}
	fmt.Fprintf(os.Stderr, "installing %s for the tests, once\n", name)
	defer declineStart("/usr/sbin/policy-rc.d")()
	if _, err := aptGet(apt, "install", "-y", "--no-install-recommends", name); err == nil {
		return nil
	}
	if out, err := aptGet(apt, "update"); err != nil {
		return fmt.Errorf("apt-get could not: %w\n%s", err, out)
	}
	if out, err := aptGet(apt, "install", "-y", "--no-install-recommends", name); err != nil {
		return fmt.Errorf("apt-get could not: %w\n%s", err, out)
	}
	return nil
}

func aptGet(apt string, arguments ...string) ([]byte, error) {
	cmd := exec.Command(apt, append([]string{"-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confold"}, arguments...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return cmd.CombinedOutput()
}

// declineStart has packages leave their services alone for a while, the way Debian asks for it. Somebody's own word on that stays.
func declineStart(file string) (undo func()) {
	if _, err := os.Stat(file); err == nil {
		return func() {}
	}
	if os.WriteFile(file, []byte("#!/bin/sh\nexit 101\n"), 0o755) != nil {
		return func() {}
	}
	return func() { _ = os.Remove(file) }
}
