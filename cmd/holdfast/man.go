package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages, one for each command, into a folder", Args: exactly("folder"),
		Example: `  holdfast man /usr/local/share/man/man1`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			// A fixed date, so that unchanged pages are identical in every build.
			header := &doc.GenManHeader{Title: "HOLDFAST", Section: "1", Source: "Holdfast", Manual: "Holdfast", Date: &time.Time{}}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("cannot write the manual pages: %w", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "written to %s\n", args[0])
			return nil
		},
	}
}
