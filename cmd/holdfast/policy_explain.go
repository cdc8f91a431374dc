package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

func policyExplainCommand() *cobra.Command {
	var q ops.PolicyQuestion
	var job string
	c := &cobra.Command{
		Use: "explain KIND [CODE [OWNER]]", Short: "Show the settings that apply to failures of a kind, and the source of each",
		Long: `For every setting the first source that defines it applies: the job, the policy's owners, its kinds, the kind's policy in Go, the policy's codes,
its defaults, the engine's policy in Go, the built-in default. Within a source, a value for the code comes before a general value. Workers publish
their policies in Go, so every server can show them.`,
		Example: `  holdfast policy explain mail
  holdfast policy explain mail RATE_LIMITED acme
  holdfast policy explain --job JOB`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 3:
				return usage(c, fmt.Errorf("%d arguments: expected KIND [CODE [OWNER]]", len(args)))
			case len(args) == 0 && job == "":
				return usage(c, fmt.Errorf("expected a KIND, or --job"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			for n, to := range []*string{&q.Kind, &q.Code, &q.Owner} {
				if n < len(args) {
					*to = args[n]
				}
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) (err error) {
				if job != "" {
					if q.Job, err = jobID(ctx, o, job); err != nil {
						return err
					}
				}
				e, err := o.ExplainPolicy(ctx, q)
				if err != nil {
					return err
				}
				return show(c, e, func(out io.Writer) { printExplanation(out, e) })
			})
		},
	}
	c.Flags().StringVar(&job, "job", "", "explain the settings of this job; kind, code and owner default to the job's")
	c.Flags().StringVar(&q.Dependency, "dependency", "", "dependency of the jobs; by default as live workers of the kind declare it")
	return c
}

// printExplanation prints every setting with its source, and below it, in parentheses, the values of sources with lower precedence.
func printExplanation(out io.Writer, e policy.Explanation) {
	about := "failures of kind " + e.Kind
	for _, one := range []struct{ what, name string }{{" with code ", e.Code}, {" of owner ", e.Owner}, {" that call ", e.Dependency}} {
		if one.name != "" {
			about += one.what + one.name
		}
	}
	fmt.Fprintf(out, "%s\n", printable(about))
	fmt.Fprintf(out, "order: %s\n\n", printable(strings.Join(e.Order, " > ")))
	var rows [][]string
	for _, s := range e.Settings {
		rows = append(rows, []string{s.Name, s.Value, s.Source})
		for _, o := range s.Others {
			rows = append(rows, []string{"", "(" + o.Value + ")", o.Source})
		}
	}
	table(out, []string{"SETTING", "VALUE", "SOURCE"}, rows)
	for _, hold := range e.Holds {
		fmt.Fprintf(out, "hold: %s\n", printable(hold))
	}
	for _, note := range e.Notes {
		fmt.Fprintf(out, "note: %s\n", printable(note))
	}
}
