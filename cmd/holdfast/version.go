package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// A build describes the build of this program.
type build struct {
	Version  string       `json:"version"`
	Revision string       `json:"revision,omitempty"`
	Modified bool         `json:"modified,omitempty"` // the working tree had changes
	Time     string       `json:"time,omitempty"`
	Go       string       `json:"go"`
	Platform string       `json:"platform"`
	Schema   store.Schema `json:"schema"` // that it makes
}

func thisBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: anystore.NewestSchema()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "vcs.time":
			b.Time = s.Value
		}
	}
	return b
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program, and of the tables that it makes", Args: cobra.NoArgs,
		Long: `Prints the version and the commit of this program, the version of Go that built it, and the version of the tables that it makes in a store.
'holdfast migrate' compares it with the version of a store's tables. A program that was built from a folder, and not from a release, says (devel).`,
		RunE: func(c *cobra.Command, _ []string) error {
			b := thisBuild()
			return show(c, b, func(out io.Writer) {
				fmt.Fprintf(out, "holdfast %s", b.Version)
				if b.Revision != "" {
					fmt.Fprintf(out, ", commit %.12s of %s", b.Revision, b.Time)
				}
				if b.Modified {
					fmt.Fprint(out, ", modified")
				}
				fmt.Fprintf(out, ", %s, %s\n", b.Go, b.Platform)
				fmt.Fprintf(out, "makes tables of version %d, which programs can use that know version %d or later\n", b.Schema.Version, b.Schema.Needs)
			})
		},
	}
}
