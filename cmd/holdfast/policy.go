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
		Short: "Check, apply, show and test policies: the rules for failures, retries and limits",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage(c, fmt.Errorf("unknown command %q", args[0]))
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringSlice("allow-code", nil, "failure codes that the file may use although they are not defined")
	c.AddCommand(policyCheckCommand(), policyApplyCommand(), policyRemoveCommand(), policyShowCommand(), policyExplainCommand(), policySimulateCommand(), policyWhatIfCommand())
	return c
}

func policyCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Check a policy file and report every mistake with its line; needs no store", Args: exactly("file"),
		Long: "Without --store or --server only built-in failure codes and those that the file defines are known. With one of them, codes that its\nworkers have published are known too.",
		RunE: func(c *cobra.Command, args []string) error {
			return withPolicyFile(c, args[0], func(set *policy.Set) error {
				fmt.Fprintf(c.OutOrStdout(), "%s is valid: %s\n", args[0], contents(set))
				return nil
			})
		},
	}
}

// contents summarizes a policy.
func contents(s *policy.Set) string {
	return fmt.Sprintf("%d kinds, %d owners, %d dependencies, %d queues, %d limits, %d windows",
		len(s.Kinds()), len(s.Owners()), len(s.Dependencies()), len(s.Queues()), len(s.Holds()), len(s.Windows()))
}

// withPolicyFile reads a policy file and calls do with it. The error lists every mistake in the file. It reads the codes of a store only if the command names
// one.
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
	return withOperator(c, func(ctx context.Context, o ops.Operator) error {
		codes, err := o.Codes(ctx)
		if err != nil {
			return err
		}
		return read(codes)
	})
}

// policyText reads a policy file.
func policyText(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, &usageError{fmt.Errorf("cannot read the policy: %w", err)}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, policy.MaxText+1))
	if err != nil {
		return nil, &usageError{fmt.Errorf("cannot read the policy: %w", err)}
	}
	return text, nil
}

// parsePolicy parses a policy. It may use the given codes, codes that it defines itself, and those of --allow-code.
func parsePolicy(c *cobra.Command, name string, text []byte, codes []catalog.Entry) (*policy.Set, error) {
	names, _ := c.Flags().GetStringSlice("allow-code")
	taxonomy, err := ops.AllowCodes(catalog.TaxonomyOf(catalog.WithoutPolicy(codes)), names)
	if err != nil {
		return nil, err
	}
	set, err := policy.ParseFor(text, taxonomy)
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s is invalid:\n%w", name, err)}
	}
	return set, nil
}

func policyApplyCommand() *cobra.Command {
	var by *ops.Actor
	var request ops.PolicyRequest
	c := &cobra.Command{
		Use: "apply FILE", Short: "Apply a policy file: the workers of the store follow it within seconds, without a restart", Args: exactly("file"),
		Long: `A file that uses a failure code is refused unless the code is built in, was published by a worker of the store, or is defined by the file itself.
Use --allow-code for codes of workers that have not started yet.`,
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(by.Name) == "" {
				return usage(c, fmt.Errorf("no actor: pass --actor"))
			}
			text, err := policyText(args[0])
			if err != nil {
				return err
			}
			request.Codes, _ = c.Flags().GetStringSlice("allow-code")
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				codes, err := o.Codes(ctx)
				if err != nil {
					return err
				}
				set, err := parsePolicy(c, args[0], text, codes)
				if err != nil {
					return err
				}
				request.Text = set.Text()
				return printAnswer(c)(applyPolicy(ctx, o, set, request, *by))
			})
		},
	}
	by = addByFlags(c)
	c.Flags().IntVar(&request.Replaces, "if-version", 0, "only if this version is the applied one; 0: any")
	return c
}

func policyRemoveCommand() *cobra.Command {
	var by *ops.Actor
	version := 0
	c := &cobra.Command{
		Use: "remove", Short: "Remove the applied policy: workers return to their policy file, or to the policies in their Go code", Args: cobra.NoArgs,
		Example: "  holdfast policy remove --store jobs.db --reason 'the policy file is correct again'",
		RunE: func(c *cobra.Command, _ []string) error {
			if strings.TrimSpace(by.Name) == "" {
				return usage(c, fmt.Errorf("no actor: pass --actor"))
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				if err := o.RemovePolicy(ctx, version, *by); err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), "removed: within seconds workers follow their policy file, or the policies in their Go code")
				return nil
			})
		},
	}
	by = addByFlags(c)
	c.Flags().IntVar(&version, "if-version", 0, "only if this version is the applied one; 0: any")
	return c
}

func applyPolicy(ctx context.Context, o ops.Policies, set *policy.Set, request ops.PolicyRequest, by ops.Actor) (string, error) {
	before, err := o.Policy(ctx)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return "", err
	}
	now, err := o.ApplyPolicy(ctx, request, by)
	if err != nil {
		return "", err
	}
	if now.Version == before.Version {
		return fmt.Sprintf("unchanged: this policy is already applied as version %d", now.Version), nil
	}
	return fmt.Sprintf("applied as version %d: %s", now.Version, contents(set)), nil
}

func policyShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the policy that the workers of a store follow", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				p, err := o.Policy(ctx)
				if err != nil {
					return err
				}
				return show(c, p, func(out io.Writer) {
					fmt.Fprintf(out, "# version %d, applied to the store %s\n", p.Version, formatTime(p.KeptAt))
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

// printInGo prints the policies that live workers have in Go code, and their precedence.
func printInGo(out io.Writer, all []ops.GoPolicy) {
	for _, g := range all {
		where, when := "Go: KindOptions.Policy of kind "+g.Kind, "before codes and defaults"
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
		fmt.Fprintln(out, "# to see which settings apply to a kind, and their sources: holdfast policy explain KIND [CODE [OWNER]]")
	}
}

// printFollowers prints how many live workers follow the policy, and for each that does not, what it lacks.
func printFollowers(out io.Writer, p ops.Policy) {
	follow, behind := 0, 0
	for _, w := range p.Workers {
		switch {
		case w.Misses != "":
			behind++
			fmt.Fprintf(out, "# worker %s follows version %d, and lacks:\n", printable(w.Worker), w.Version)
			for line := range strings.Lines(w.Misses) {
				fmt.Fprintf(out, "#   %s\n", printable(strings.TrimRight(line, "\r\n")))
			}
		case w.Version != p.Version:
			behind++
			fmt.Fprintf(out, "# worker %s follows version %d and has not read version %d yet\n", printable(w.Worker), w.Version, p.Version)
		default:
			follow++
		}
	}
	fmt.Fprintf(out, "# followed by %d of %d live workers\n", follow, follow+behind)
}
