package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// A usageError is an invalid command line. It ends the command with exitUsage.
type usageError struct{ error }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Run, inspect and operate background jobs",
		Long: `Holdfast runs background jobs and handles their failures.

Every command works on a store (--store jobs.db, or --store postgres://user@host/name) or through a server (--server http://127.0.0.1:4747), with
the same output. Without either flag it uses HOLDFAST_SERVER, HOLDFAST_STORE or DATABASE_URL, and otherwise the store in the user's data
directory, which 'holdfast serve' creates.

` + exitCodes,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage(c, fmt.Errorf("unknown command %q", args[0]))
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	addTargetFlags(root)
	root.PersistentFlags().Bool("json", false, "print JSON instead of a table")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, err) })
	root.AddCommand(
		jobsCommand(), jobCommand(), storyCommand(), explainCommand(), retryCommand(), cancelCommand(), discardCommand(),
		pauseCommand(), resumeCommand(), doctorCommand(), policyCommand(), codesCommand(),
		holdsCommand(), breakersCommand(), redriveCommand(), errorsCommand(), analyticsCommand(), sharesCommand(),
		groupsCommand(), eventsCommand(), auditCommand(), subscriptionsCommand(), deliveriesCommand(), schedulesCommand(), retentionCommand(), dutiesCommand(),
		serveCommand(), configCommand(), enqueueCommand(), editCommand(), tailCommand(), deadLettersCommand(), keysCommand(), migrateCommand(), backupCommand(), restoreCommand(),
		waitCommand(), stuckCommand(), workersCommand(), queuesCommand(), manCommand(), versionCommand(),
	)
	root.AddCommand(chaosCommands()...)
	addCompletions(root)
	return root
}

func usage(c *cobra.Command, err error) error {
	return &usageError{fmt.Errorf("%w; see '%s --help'", err, c.CommandPath())}
}

// exactly returns a check that the command has these arguments. Its error names them.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usage(c, fmt.Errorf("expected %s, got %d argument(s)", strings.ToUpper(strings.Join(names, " ")), len(args)))
	}
}
