package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/catalog"
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
	c.PersistentFlags().StringSlice("own-code", nil, "failure codes that the file may name although nothing defines them")
	c.AddCommand(policyCheckCommand(), policyApplyCommand(), policyRemoveCommand(), policyShowCommand(), policyExplainCommand(), policySimulateCommand(), policyWhatIfCommand())
	return c
}

func policyCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Name every mistake in a file, with its line; needs no store", Args: exactly("file"),
		Long: "Without --store or --server only the built-in failure codes, and those that the file defines, are known. With one of them the codes\nthat its workers published are known too.",
		RunE: func(c *cobra.Command, args []string) error {
			return withPolicyFile(c, args[0], func(set *policy.Set) error {
				fmt.Fprintf(c.OutOrStdout(), "%s is sound: %s\n", args[0], contents(set))
				return nil
			})
		},
	}
}

// contents sums a file up.
func contents(s *policy.Set) string {
	return fmt.Sprintf("%d kinds, %d owners, %d dependencies, %d queues, %d limits, %d windows",
		len(s.Kinds()), len(s.Owners()), len(s.Dependencies()), len(s.Queues()), len(s.Holds()), len(s.Windows()))
}

// withPolicyFile reads a file, or says everything that is wrong with it. The codes of a store are asked for only if one is named.
func withPolicyFile(c *cobra.Command, name string, do func(*policy.Set) error) error {
	text, err := policyText(name)
	if err != nil {
		return err
	}
	read := func(codes []catalog.Entry) error {
		set, err := parsePolicy(c, name, text, codes)
		if err != nil {
			return err
		}
		return do(set)
	}
	if !c.Flags().Changed("store") && !c.Flags().Changed("server") {
		return read(nil)
	}
	return withDesk(c, func(ctx context.Context, o ops.Desk) error {
		codes, err := o.Codes(ctx)
		if err != nil {
			return err
		}
		return read(codes)
	})
}

// policyText is what a file says.
func policyText(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, &usageError{fmt.Errorf("the policy cannot be read: %w", err)}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, policy.MaxText+1))
	if err != nil {
		return nil, &usageError{fmt.Errorf("the policy cannot be read: %w", err)}
	}
	return text, nil
}

// parsePolicy reads a policy that may name these codes, those it defines itself, and those of --own-code.
func parsePolicy(c *cobra.Command, name string, text []byte, codes []catalog.Entry) (*policy.Set, error) {
	names, _ := c.Flags().GetStringSlice("own-code")
	taxonomy, err := ops.Accepting(catalog.TaxonomyOf(catalog.WithoutPolicy(codes)), names)
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
	var order ops.PolicyOrder
	c := &cobra.Command{
		Use: "apply FILE", Short: "Let the workers of a store follow a file, within seconds and without a restart", Args: exactly("file"),
		Long: `A file that names a failure code is refused unless the code is built in, was published by a worker of the store, or is defined by the file
itself. Name with --own-code what is to be accepted all the same, for workers that are yet to start.`,
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(by.Actor) == "" {
				return usage(c, fmt.Errorf("nobody is named as the actor: give --actor"))
			}
			text, err := policyText(args[0])
			if err != nil {
				return err
			}
			order.Codes, _ = c.Flags().GetStringSlice("own-code")
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				codes, err := o.Codes(ctx)
				if err != nil {
					return err
				}
				set, err := parsePolicy(c, args[0], text, codes)
				if err != nil {
					return err
				}
				order.Text = set.Text()
				return answered(c)(applyPolicy(ctx, o, set, order, *by))
			})
		},
	}
	by = byWhom(c)
	c.Flags().IntVar(&order.Replaces, "replaces", 0, "refuse unless this version is applied; 0: whatever is applied")
	return c
}

func policyRemoveCommand() *cobra.Command {
	var by *ops.By
	version := 0
	c := &cobra.Command{
		Use: "remove", Short: "Let the workers of a store go back to the policy file they were given, or to their code", Args: cobra.NoArgs,
		Example: "  holdfast policy remove --store jobs.db --reason 'the file in git is right again'",
		RunE: func(c *cobra.Command, _ []string) error {
			if strings.TrimSpace(by.Actor) == "" {
				return usage(c, fmt.Errorf("nobody is named as the actor: give --actor"))
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				if err := o.RemovePolicy(ctx, version, *by); err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), "removed: workers follow the policy file they were given, or their code, within seconds")
				return nil
			})
		},
	}
	by = byWhom(c)
	c.Flags().IntVar(&version, "version", 0, "refuse unless this version is applied; 0: whatever is applied")
	return c
}

func applyPolicy(ctx context.Context, o ops.Ruling, set *policy.Set, order ops.PolicyOrder, by ops.By) (string, error) {
	before, err := o.Policy(ctx)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return "", err
	}
	now, err := o.ApplyPolicy(ctx, order, by)
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
					fmt.Fprintf(out, "# version %d, applied to the store %s\n", p.Version, moment(p.KeptAt))
					for line := range strings.Lines(p.Text) {
						fmt.Fprintln(out, printable(strings.TrimRight(line, "\r\n")))
					}
					printInGo(out, p.InGo)
					printFollowers(out, p)
				})
			})
		},
	}
}

// printInGo says what live workers have in Go besides the file, and when it applies.
func printInGo(out io.Writer, all []ops.InGo) {
	for _, g := range all {
		where, when := "Go: Kind.Policy of kind "+g.Kind, "before codes and defaults"
		if g.Kind == "" {
			where, when = "Go: Config.Policy", "after defaults"
		}
		if len(g.Versions) > 0 {
			where += ", version " + strings.Join(g.Versions, ", ")
		}
		fmt.Fprintf(out, "# %s (%s):\n", printable(where), when)
		say := func(path string, settings map[string]string) {
			for _, name := range slices.Sorted(maps.Keys(settings)) {
				fmt.Fprintf(out, "#   %s: %s\n", printable(path+name), printable(settings[name]))
			}
		}
		say("", g.Settings)
		for _, code := range slices.Sorted(maps.Keys(g.Codes)) {
			say("codes."+code+".", g.Codes[code])
		}
	}
	if len(all) > 0 {
		fmt.Fprintln(out, "# what applies to a kind, and from where: holdfast policy explain KIND [CODE [OWNER]]")
	}
}

// printFollowers says which live workers follow the policy, and what those miss that do not.
func printFollowers(out io.Writer, p ops.Policy) {
	follow, behind := 0, 0
	for _, w := range p.Workers {
		switch {
		case w.Misses != "":
			behind++
			fmt.Fprintf(out, "# worker %s follows version %d, and misses:\n", printable(w.Worker), w.Version)
			for line := range strings.Lines(w.Misses) {
				fmt.Fprintf(out, "#   %s\n", printable(strings.TrimRight(line, "\r\n")))
			}
		case w.Version != p.Version:
			behind++
			fmt.Fprintf(out, "# worker %s follows version %d, and has not read version %d yet\n", printable(w.Worker), w.Version, p.Version)
		default:
			follow++
		}
	}
	fmt.Fprintf(out, "# followed by %d of %d live workers\n", follow, follow+behind)
}
