package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A copier is a store that can be copied while it is at work.
type copier interface {
	Backup(ctx context.Context, path string) error
}

func backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Copy an SQLite store into a new file while it is at work", Args: exactly("file"),
		Long: `Copies an SQLite store into a new file, as it is at one moment, while others go on working with it. The file is there only when it is whole. For
PostgreSQL use its own means: pg_dump, or a base backup with the write-ahead log.`,
		Example: `  holdfast backup jobs-monday.db --store jobs.db`,
		RunE: func(c *cobra.Command, args []string) error {
			return withPlace(c, func(ctx context.Context, p *place) error {
				if p.near == nil {
					return usage(c, fmt.Errorf("a backup is made beside the store: run this where the store is, with --store"))
				}
				from, ok := p.near.(copier)
				if !ok {
					return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "this is no SQLite store: PostgreSQL is backed up by its own means, such as pg_dump"}
				}
				if err := from.Backup(ctx, args[0]); err != nil {
					return err
				}
				return showCopy(c, args[0], "copied into")
			})
		},
	}
}

// showCopy says what was written.
func showCopy(c *cobra.Command, file, verb string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	answer := struct {
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}{file, info.Size()}
	return show(c, answer, func(out io.Writer) { fmt.Fprintf(out, "%s %s, %d bytes\n", verb, printable(file), info.Size()) })
}

func restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE --store NEW", Short: "Make a new SQLite store of a backup", Args: exactly("file"),
		Long: `Makes a new store of a backup. It checks the backup first, and never writes over a store that is there. Every fence of a live job is lifted, so that a
worker that still holds a job from before cannot settle it: what it did is done again by whoever claims the job.`,
		Example: `  holdfast restore jobs-monday.db --store jobs-new.db`,
		RunE: func(c *cobra.Command, args []string) error {
			address, _ := c.Flags().GetString("store")
			file, err := store.File(address)
			if address != "" && err != nil {
				return err
			}
			if file == "" {
				return usage(c, fmt.Errorf("name the new store by --store: a file that is not there yet"))
			}
			if err := sqlite.Restore(c.Context(), args[0], file); err != nil {
				return err
			}
			return showCopy(c, file, "restored into")
		},
	}
}
