package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A usageError is a command line that makes no sense.
type usageError struct{ error }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Background jobs that do not get lost",
		Long: `Holdfast runs background jobs and takes care of what happens when they fail.

The store is a file (jobs.db) or a database (postgres://user@host/name), named by --store or the environment
variable DATABASE_URL.

Exit codes: 0 fine, 1 an error or a finding, 2 usage, 3 not found, 4 conflict, 75 the store cannot be used now.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage(c, fmt.Errorf("there is no verb %q", args[0]))
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().String("store", os.Getenv("DATABASE_URL"), "the store: a file or postgres://...")
	root.PersistentFlags().Bool("json", false, "print JSON instead of a table")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, err) })
	root.AddCommand(
		demoCommand(), jobsCommand(), storyCommand(), explainCommand(), retryCommand(), cancelCommand(), discardCommand(),
		pauseCommand(), resumeCommand(), doctorCommand(), chaosCommand(), policyCommand(),
		holdsCommand(), breakersCommand(), redriveCommand(), errorsCommand(), analyticsCommand(), sharesCommand(),
		groupsCommand(), eventsCommand(), auditCommand(), subscriptionsCommand(), deliveriesCommand(), schedulesCommand(), retentionCommand(), dutiesCommand(),
	)
	return root
}

func usage(c *cobra.Command, err error) error {
	return &usageError{fmt.Errorf("%w; see '%s --help'", err, c.CommandPath())}
}

// exactly checks the number of arguments and names what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usage(c, fmt.Errorf("expected %s, got %d argument(s)", strings.ToUpper(strings.Join(names, " ")), len(args)))
	}
}

// withStore opens the store that the command names, which must exist: a misspelled file name is not an empty store.
func withStore(c *cobra.Command, do func(ctx context.Context, s holdfast.Store, o *ops.Service) error) error {
	address, _ := c.Flags().GetString("store")
	if address == "" {
		return usage(c, fmt.Errorf("no store: give --store jobs.db or --store postgres://..., or set DATABASE_URL"))
	}
	if file, isFile := sqliteFile(address); isFile {
		if _, err := os.Stat(file); os.IsNotExist(err) {
			return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: fmt.Sprintf("there is no store at %s: check the name", file)}
		}
	}
	s, err := store.Open(c.Context(), address)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(c.Context(), s, ops.New(s, ops.Config{Retention: engine.DefaultRetention, CheckSubscription: checkSink}))
}

// sqliteFile reports whether an address names a file, and which.
func sqliteFile(address string) (string, bool) {
	if strings.Contains(address, "://") && !strings.HasPrefix(address, "file:") && !strings.HasPrefix(address, "sqlite:") {
		return "", false
	}
	for _, scheme := range []string{"sqlite:", "file:"} {
		address = strings.TrimPrefix(address, scheme)
	}
	return strings.TrimPrefix(address, "//"), true
}
