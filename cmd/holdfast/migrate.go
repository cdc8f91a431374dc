package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/internal/config"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func migrateCommand() *cobra.Command {
	status := &cobra.Command{
		Use: "migrate", Short: "Show or change the version of a store's tables",
		Long: `Shows the version of the tables in a store, and the version that this program needs. It changes nothing. Exits with 1 when the tables have to be
migrated before this program can use them.

Tables that a newer release has migrated can be used if its steps allow it, and are refused otherwise: each step records the lowest version that a
program must know to use tables with the step.

'holdfast serve' and programs that use the library migrate a store when they open it. In a deployment where they may not, because their database role
has no right to create tables, run 'holdfast migrate up' with another role before they start. All other commands never change the tables.`,
		Example: `  holdfast migrate --store postgres://admin@db/jobs
  holdfast migrate up --store postgres://admin@db/jobs
  holdfast migrate sql --store postgres://admin@db/jobs | less`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withSchema(c, func(_ context.Context, _ string, found store.Schema) error {
				if err := showSchema(c, found); err != nil {
					return err
				}
				if found.Current() != nil {
					return errFindings
				}
				return nil
			})
		},
	}
	status.AddCommand(
		migrateUpCommand(),
		&cobra.Command{
			Use: "sql", Short: "Print the statements that 'migrate up' would run", Args: cobra.NoArgs,
			Long: "Prints the statements that lead from the version of the store's tables to the version of this program, for an administrator who runs them. It changes nothing.",
			RunE: func(c *cobra.Command, _ []string) error {
				return withSchema(c, func(_ context.Context, _ string, found store.Schema) error {
					return show(c, found, func(out io.Writer) { fmt.Fprint(out, found.SQL) })
				})
			},
		},
	)
	return status
}

func migrateUpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Create or migrate the tables to the version of this program", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withSchema(c, func(ctx context.Context, address string, found store.Schema) error {
				if found.SQL != "" {
					s, err := anystore.Open(ctx, address)
					if err != nil {
						return err
					}
					if err := s.Close(); err != nil {
						return err
					}
				}
				after, err := anystore.ReadSchema(ctx, address)
				if err != nil {
					return err
				}
				return showSchema(c, after)
			})
		},
	}
}

// withSchema reads the schema of the store that a command names, and calls do with it.
func withSchema(c *cobra.Command, do func(ctx context.Context, address string, found store.Schema) error) error {
	set, err := config.Read(os.Environ())
	if err != nil {
		return &usageError{err}
	}
	server, address, err := resolveTarget(c, set)
	if err != nil {
		return usage(c, err)
	}
	if server != "" {
		return usage(c, fmt.Errorf("this command needs direct access to the store: name it with --store"))
	}
	found, err := anystore.ReadSchema(c.Context(), address)
	if err != nil {
		return err
	}
	return do(c.Context(), address, found)
}

func showSchema(c *cobra.Command, found store.Schema) error {
	found.SQL = ""
	return show(c, found, func(out io.Writer) {
		switch {
		case found.Version == found.Latest:
			fmt.Fprintf(out, "version %d: up to date\n", found.Version)
		case found.Version > found.Latest:
			fmt.Fprintf(out, "version %d: migrated by a newer release; this program knows version %d and can use the tables\n", found.Version, found.Latest)
		case found.Version == 0:
			fmt.Fprintf(out, "no tables: 'holdfast migrate up' creates them (version %d)\n", found.Latest)
		default:
			fmt.Fprintf(out, "version %d: 'holdfast migrate up' leads to version %d\n", found.Version, found.Latest)
		}
	})
}
