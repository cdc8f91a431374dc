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
		Use: "man FOLDER", Short: "Write the manual pages, one a verb, into a folder", Args: exactly("folder"),
		Example: `  holdfast man /usr/local/share/man/man1`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			// The same date at every build: pages that did not change stay the same file.
			header := &doc.GenManHeader{Title: "HOLDFAST", Section: "1", Source: "Holdfast", Manual: "Holdfast", Date: &time.Time{}}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("the manual cannot be written: %w", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "written into %s\n", args[0])
			return nil
		},
	}
}
