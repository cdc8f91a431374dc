package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// A usageError is a command line that makes no sense.
type usageError struct{ error }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Background jobs that do not get lost",
		Long: `Holdfast runs background jobs and takes care of what happens when they fail.

Every verb works near, on a store that --store names (a file such as jobs.db, or postgres://user@host/name), and far, at a server that
--server names (http://127.0.0.1:4747), with the same words and the same answers. Without either the environment is asked:
HOLDFAST_SERVER, HOLDFAST_STORE, DATABASE_URL; and at last the store in the user's data directory, which 'holdfast serve' makes.

` + exitCodes,
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
	wherePlaced(root)
	root.PersistentFlags().Bool("json", false, "print JSON instead of a table")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, err) })
	root.AddCommand(
		demoCommand(), jobsCommand(), jobCommand(), storyCommand(), explainCommand(), retryCommand(), cancelCommand(), discardCommand(),
		pauseCommand(), resumeCommand(), doctorCommand(), chaosCommand(), policyCommand(), codesCommand(),
		holdsCommand(), breakersCommand(), redriveCommand(), errorsCommand(), analyticsCommand(), sharesCommand(),
		groupsCommand(), eventsCommand(), auditCommand(), subscriptionsCommand(), deliveriesCommand(), schedulesCommand(), retentionCommand(), dutiesCommand(),
		serveCommand(), configCommand(), enqueueCommand(), editCommand(), tailCommand(), deadLettersCommand(), keysCommand(), backupCommand(), restoreCommand(),
		stuckCommand(), workersCommand(), queuesCommand(), manCommand(), versionCommand(),
	)
	completed(root)
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
