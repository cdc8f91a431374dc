// Command release makes releases. See docs/releasing.md.
//
//	release tag VERSION        make the release commit and its tags
//	release build [-out DIR]   build the files of the release that is checked out
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// toolchain is the Go release that builds all files: another one would write other bytes. The Makefile reads this line.
const toolchain = "go1.26.8"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("expected 'tag VERSION', such as 'tag v0.1.0', or 'build [-out DIR]'")

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	verb, args := args[0], args[1:]
	flags := flag.NewFlagSet("release "+verb, flag.ContinueOnError)
	out := flags.String("out", "dist", "the folder for the files of the release")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if runtime.Version() != toolchain {
		return fmt.Errorf("releases are made with %s, and this is %s: run 'make tag' and 'make release', which choose it", toolchain, runtime.Version())
	}
	repo, err := openRepository(".")
	if err != nil {
		return err
	}
	switch {
	case verb == "tag" && flags.NArg() == 1:
		return makeTags(repo, flags.Arg(0))
	case verb == "build" && flags.NArg() == 0:
		dir, err := filepath.Abs(*out)
		if err != nil {
			return err
		}
		return build(repo, dir)
	}
	return errUsage
}
