package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/ops"
)

func breakersCommand() *cobra.Command {
	c := listBreakersCommand("breakers", "Show the breakers of dependencies; open or close one")
	c.Example = `  holdfast breakers --store jobs.db
  holdfast breakers show gateway --store jobs.db
  holdfast breakers force-open gateway --store jobs.db --reason "maintenance until six"`
	c.AddCommand(
		listBreakersCommand("list", "List every dependency with the state of its breaker"), showBreakerCommand(),
		breakerCommand("open", "Open a breaker as if calls had failed; probes close it later", "open", ops.Operator.OpenBreaker),
		breakerCommand("close", "Close a breaker: the rate of its jobs rises gradually, and calls decide its state again", "closing: the rate of its jobs rises gradually", ops.Operator.CloseBreaker),
		breakerCommand("force-open", "Keep a breaker open, whatever calls return, until 'auto'", "open until 'auto'", func(o ops.Operator, ctx context.Context, dependency string, by ops.Actor) error {
			return o.ForceBreaker(ctx, dependency, true, by)
		}),
		breakerCommand("force-closed", "Keep a breaker closed, whatever calls return, until 'auto'", "closed until 'auto'", func(o ops.Operator, ctx context.Context, dependency string, by ops.Actor) error {
			return o.ForceBreaker(ctx, dependency, false, by)
		}),
		breakerCommand("auto", "End a forced state: calls decide the breaker's state again", "automatic state restored", ops.Operator.AutoBreaker),
	)
	return c
}

func listBreakersCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				breakers, err := o.Breakers(ctx)
				if err != nil {
					return err
				}
				return show(c, breakers, func(out io.Writer) { printBreakers(out, breakers) })
			})
		},
	}
}

// breakerCommand makes a command that changes one breaker. The change is recorded with actor and reason.
func breakerCommand(name, short, answer string, act func(o ops.Operator, ctx context.Context, dependency string, by ops.Actor) error) *cobra.Command {
	var by *ops.Actor
	c := &cobra.Command{
		Use: name + " DEPENDENCY", Short: short, Args: exactly("dependency"),
		RunE: func(c *cobra.Command, args []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				err := act(o, ctx, args[0], *by)
				if err == nil {
					fmt.Fprintf(c.OutOrStdout(), "the breaker of %s: %s\n", printable(args[0]), answer)
				}
				return err
			})
		},
	}
	by = addByFlags(c)
	return c
}

func printBreakers(out io.Writer, breakers []ops.Breaker) {
	if len(breakers) == 0 {
		fmt.Fprintln(out, "no dependency is known: name one in the kind (engine.KindOptions.Dependency) or in the draft")
		return
	}
	rows := make([][]string, len(breakers))
	for n, b := range breakers {
		rows[n] = []string{b.Dependency, string(b.State), formatTime(b.Since), formatTime(b.NextProbe), windowText(b), countText(b.Behind), orDash(b.Code), orDash(b.Actor), short(orDash(b.Why), 60)}
	}
	table(out, []string{"DEPENDENCY", "STATE", "SINCE", "NEXT PROBE", "FAILED", "HELD", "LAST CODE", "BY", "REASON"}, rows)
}

// windowText formats the failed and slow calls of a breaker's window.
func windowText(b ops.Breaker) string {
	if b.Calls == 0 {
		return "-"
	}
	text := fmt.Sprintf("%d of %d", b.Failures, b.Calls)
	if b.Slow > 0 {
		text += fmt.Sprintf(", %d slow", b.Slow)
	}
	return text
}

func showBreakerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show DEPENDENCY", Short: "Show one breaker with its history", Args: exactly("dependency"),
		RunE: func(c *cobra.Command, args []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				b, err := o.Breaker(ctx, args[0])
				if err != nil {
					return err
				}
				return show(c, b, func(out io.Writer) { printBreaker(out, b) })
			})
		},
	}
}

func printBreaker(out io.Writer, b ops.Breaker) {
	printBreakers(out, []ops.Breaker{b})
	say := func(what, format string, args ...any) {
		fmt.Fprintf(out, "%-14s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	if b.Message != "" {
		say("last failure", "%s: %s", b.Code, b.Message)
	}
	if b.Opens > 1 {
		say("opened", "%s times in a row", strconv.Itoa(b.Opens))
	}
	if b.Lets != nil {
		say("lets through", "%s", allows(*b.Lets))
	}
	if b.Prober != "" {
		say("probed by", "%s", b.Prober)
	}
	if len(b.Kinds) > 0 {
		say("called by", "%s", strings.Join(b.Kinds, ", "))
	}
	rows := make([][]string, len(b.History))
	for n, t := range b.History {
		rows[n] = []string{formatTime(t.At), string(t.From), string(t.To), orDash(t.Actor), orDash(t.Why)}
	}
	if len(rows) > 0 {
		table(out, []string{"WHEN", "FROM", "TO", "BY", "REASON"}, rows)
	}
}
