package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/anystore"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A copier is a store that can be copied while it is in use.
type copier interface {
	Backup(ctx context.Context, path string) error
}

func backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Copy an SQLite store into a new file while it is in use", Args: exactly("file"),
		Long: `Writes a consistent copy of an SQLite store into a new file while other processes use the store. The file appears only when it is complete. For
PostgreSQL use pg_dump, or a base backup with the write-ahead log.`,
		Example: `  holdfast backup jobs-monday.db --store jobs.db`,
		RunE: func(c *cobra.Command, args []string) error {
			return withTarget(c, func(ctx context.Context, t *target) error {
				if t.store == nil {
					return usage(c, fmt.Errorf("a backup needs direct access to the store: run this on the store's machine, with --store"))
				}
				from, ok := t.store.(copier)
				if !ok {
					return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "this is not an SQLite store: back up PostgreSQL with pg_dump or a base backup"}
				}
				if err := from.Backup(ctx, args[0]); err != nil {
					return err
				}
				return showCopy(c, args[0], "copied into")
			})
		},
	}
}

// showCopy prints the file that was written and its size.
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
		Use: "restore FILE --store NEW", Short: "Create a new SQLite store from a backup", Args: exactly("file"),
		Long: `Creates a new store from a backup. It checks the backup first and never overwrites an existing store. It raises the token of every job that has not
ended, so a worker that claimed a job from the former store cannot settle it: the next worker that claims the job runs it again.`,
		Example: `  holdfast restore jobs-monday.db --store jobs-new.db`,
		RunE: func(c *cobra.Command, args []string) error {
			address, _ := c.Flags().GetString("store")
			file, err := anystore.File(address)
			if address != "" && err != nil {
				return err
			}
			if file == "" {
				return usage(c, fmt.Errorf("name the new store with --store: a file that does not exist yet"))
			}
			if err := sqlite.Restore(c.Context(), args[0], file); err != nil {
				return err
			}
			return showCopy(c, file, "restored into")
		},
	}
}
