package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

// Where the policy of a store is kept.
const (
	policyRoom    = "policy"
	policyCurrent = "current"
)

// An appliedPolicy is the body of that record.
type appliedPolicy struct {
	Text string `json:"text"`
}

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

// ownCodes adds what --own-code names to the built-in codes. Only the names are known here, and that waiting may cure them.
func ownCodes(c *cobra.Command) (*failure.Taxonomy, error) {
	names, _ := c.Flags().GetStringSlice("own-code")
	codes := make([]failure.Code, len(names))
	for i, name := range names {
		codes[i] = failure.Code{Name: name, Category: "unknown", Retryable: true, Blame: failure.Us, HTTPStatus: 500, Message: "A failure of the application's own.", Remedy: "Ask whoever wrote the application."}
	}
	taxonomy, err := failure.NewTaxonomy(codes...)
	if err != nil {
		return nil, &usageError{err}
	}
	return taxonomy, nil
}

func policyApplyCommand() *cobra.Command {
	var by holdfast.Event
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
			return withStore(c, func(ctx context.Context, s holdfast.Store, _ *ops.Service) error {
				answer, err := applyPolicy(ctx, s, set, by)
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), answer)
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&by.Actor, "actor", me(), "who does this")
	c.Flags().StringVar(&by.Reason, "reason", "", "why, for whoever asks")
	return c
}

func applyPolicy(ctx context.Context, s holdfast.Keeper, set *policy.Set, by holdfast.Event) (string, error) {
	record, old, err := currentPolicy(ctx, s)
	if err != nil {
		return "", err
	}
	if record.Version > 0 && old == set.Text() {
		return fmt.Sprintf("nothing changed: this is version %d already", record.Version), nil
	}
	if record.Body, err = json.Marshal(appliedPolicy{set.Text()}); err != nil {
		return "", err
	}
	by.Subject, by.Name = "policy", "applied"
	if err := s.Keep(ctx, holdfast.Change{Records: []holdfast.Record{record}, Events: []holdfast.Event{by}}); err != nil {
		return "", err
	}
	return fmt.Sprintf("applied as version %d: %s", record.Version+1, contents(set)), nil
}

// currentPolicy is what a store's workers follow; version 0 when there is none.
func currentPolicy(ctx context.Context, s holdfast.Keeper) (holdfast.Record, string, error) {
	records, err := s.Records(ctx, policyRoom)
	if err != nil {
		return holdfast.Record{}, "", err
	}
	for _, r := range records {
		if r.Name == policyCurrent {
			var body appliedPolicy
			if err := json.Unmarshal(r.Body, &body); err != nil {
				return r, "", nil // whatever it is, it can be replaced
			}
			return r, body.Text, nil
		}
	}
	return holdfast.Record{Room: policyRoom, Name: policyCurrent}, "", nil
}

func policyShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the policy that the workers of a store follow", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withStore(c, func(ctx context.Context, s holdfast.Store, _ *ops.Service) error {
				record, text, err := currentPolicy(ctx, s)
				if err != nil {
					return err
				}
				if record.Version == 0 {
					return noPolicy()
				}
				answer := struct {
					Version int       `json:"version"`
					KeptAt  time.Time `json:"kept_at"`
					Text    string    `json:"text"`
				}{record.Version, record.KeptAt, text}
				return show(c, answer, func(out io.Writer) {
					fmt.Fprintf(out, "# version %d, applied %s\n", record.Version, moment(record.KeptAt))
					for line := range strings.Lines(text) {
						fmt.Fprintln(out, printable(strings.TrimRight(line, "\r\n")))
					}
				})
			})
		},
	}
}

func noPolicy() error {
	return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "no policy is applied: workers follow what is written in their code; see 'holdfast policy apply --help'"}
}
