package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

func policyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Check, apply, show and try out policies: how often to try, whom to spare, what to limit",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage(c, fmt.Errorf("there is no verb %q", args[0]))
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringSlice("own-code", nil, "failure codes of the application's own that the file may name")
	c.AddCommand(policyCheckCommand(), policyApplyCommand(), policyShowCommand(), policySimulateCommand(), policyWhatIfCommand())
	return c
}

func policyCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Name every mistake in a file, with its line; needs no store", Args: exactly("file"),
		RunE: func(c *cobra.Command, args []string) error {
			set, err := readPolicy(c, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is sound: %s\n", args[0], contents(set))
			return nil
		},
	}
}

// contents sums a file up.
func contents(s *policy.Set) string {
	return fmt.Sprintf("%d kinds, %d owners, %d dependencies, %d queues, %d limits, %d windows",
		len(s.Kinds()), len(s.Owners()), len(s.Dependencies()), len(s.Queues()), len(s.Holds()), len(s.Windows()))
}

// readPolicy reads a file, or says everything that is wrong with it.
func readPolicy(c *cobra.Command, name string) (*policy.Set, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, &usageError{fmt.Errorf("the policy cannot be read: %w", err)}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, policy.MaxText+1))
	if err != nil {
		return nil, &usageError{fmt.Errorf("the policy cannot be read: %w", err)}
	}
	return parsePolicy(c, name, text)
}

func parsePolicy(c *cobra.Command, name string, text []byte) (*policy.Set, error) {
	taxonomy, err := ownCodes(c)
	if err != nil {
		return nil, err
	}
	set, err := policy.ParseFor(text, taxonomy)
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s cannot be used:\n%w", name, err)}
	}
	return set, nil
}

func policyApplyCommand() *cobra.Command {
	var by *ops.By
	c := &cobra.Command{
		Use: "apply FILE", Short: "Let the workers of a store follow a file, within seconds and without a restart", Args: exactly("file"),
		RunE: func(c *cobra.Command, args []string) error {
			set, err := readPolicy(c, args[0])
			if err != nil {
				return err
			}
			if strings.TrimSpace(by.Actor) == "" {
				return usage(c, fmt.Errorf("nobody is named as the actor: give --actor"))
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				return answered(c)(applyPolicy(ctx, o, set, *by))
			})
		},
	}
	by = byWhom(c)
	return c
}

func applyPolicy(ctx context.Context, o ops.Ruling, set *policy.Set, by ops.By) (string, error) {
	before, err := o.Policy(ctx)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return "", err
	}
	now, err := o.ApplyPolicy(ctx, set.Text(), by)
	if err != nil {
		return "", err
	}
	if now.Version == before.Version {
		return fmt.Sprintf("nothing changed: this is version %d already", now.Version), nil
	}
	return fmt.Sprintf("applied as version %d: %s", now.Version, contents(set)), nil
}

func policyShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the policy that the workers of a store follow", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				p, err := o.Policy(ctx)
				if err != nil {
					return err
				}
				return show(c, p, func(out io.Writer) {
					fmt.Fprintf(out, "# version %d, applied %s\n", p.Version, moment(p.KeptAt))
					for line := range strings.Lines(p.Text) {
						fmt.Fprintln(out, printable(strings.TrimRight(line, "\r\n")))
					}
				})
			})
		},
	}
}
