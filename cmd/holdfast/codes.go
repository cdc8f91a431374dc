package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

func codesCommand() *cobra.Command {
	customOnly := false
	c := &cobra.Command{
		Use: "codes", Short: "List failure codes with their meaning, remedy and source", Args: cobra.NoArgs,
		Long: `A definition is built in, published by a worker when it starts, or part of the applied policy. If a code has several definitions, the policy's
applies; otherwise that of a live worker; otherwise the newest. 'holdfast codes show CODE' prints all of them.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				codes, err := o.Codes(ctx)
				if err != nil {
					return err
				}
				if customOnly {
					codes = slices.DeleteFunc(codes, func(e catalog.Entry) bool { return e.Source == catalog.BuiltIn })
				}
				return show(c, codes, func(out io.Writer) { printCodes(out, codes) })
			})
		},
	}
	c.Flags().BoolVar(&customOnly, "custom", false, "only codes that are not built in")
	c.AddCommand(showCodeCommand())
	return c
}

func printCodes(out io.Writer, codes []catalog.Entry) {
	if len(codes) == 0 {
		fmt.Fprintln(out, "no worker has published codes, and no policy defines any")
		return
	}
	rows := make([][]string, len(codes))
	for n, e := range codes {
		rows[n] = []string{e.Code.Name, e.Code.Category, retried(e.Code.Retryable), string(e.Code.Blame), sourceOf(e.Definition), short(e.Code.Message, 60), short(e.Code.Remedy, 70)}
	}
	table(out, []string{"CODE", "CATEGORY", "RETRIED", "BLAME", "SOURCE", "MESSAGE", "REMEDY"}, rows)
}

func retried(retryable bool) string {
	if retryable {
		return "yes"
	}
	return "final"
}

// sourceOf names the source of a definition. For a worker that is no longer alive it adds when the worker was last seen.
func sourceOf(d catalog.Definition) string {
	text := strings.TrimSpace(d.Source + " " + strings.Join(d.Versions, ", "))
	if d.Source == catalog.Worker && !d.Live {
		text += ", last seen " + formatTime(d.SeenAt)
	}
	return text
}

func showCodeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show CODE", Short: "Show one failure code with all its definitions, the one that applies first", Args: exactly("code"),
		RunE: func(c *cobra.Command, args []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				codes, err := o.Codes(ctx)
				if err != nil {
					return err
				}
				names := make([]string, len(codes))
				for n, e := range codes {
					if names[n] = e.Code.Name; e.Code.Name == args[0] {
						return show(c, e, func(out io.Writer) { printCode(out, e) })
					}
				}
				message := fmt.Sprintf("failure code %.80q is not defined", args[0])
				if meant := policy.Nearest(args[0], names); meant != "" {
					message += "; did you mean " + meant + "?"
				}
				return &holdfast.Error{Err: holdfast.ErrNotFound, Message: message}
			})
		},
	}
}

func printCode(out io.Writer, e catalog.Entry) {
	for n, d := range append([]catalog.Definition{e.Definition}, e.Others...) {
		say := func(what, format string, args ...any) {
			fmt.Fprintf(out, "%-12s %s\n", what, printable(fmt.Sprintf(format, args...)))
		}
		if n > 0 {
			fmt.Fprintln(out, "\ndoes not apply:")
		}
		say("code", "%s", d.Code.Name)
		say("source", "%s", sourceOf(d))
		say("message", "%s", d.Code.Message)
		say("remedy", "%s", d.Code.Remedy)
		say("category", "%s", d.Code.Category)
		say("blame", "%s", d.Code.Blame)
		say("retried", "%s", retried(d.Code.Retryable))
		say("HTTP status", "%s", strconv.Itoa(d.Code.HTTPStatus))
		if d.Code.Benign {
			say("benign", "yes: an expected failure")
		}
		if !d.PublishedAt.IsZero() {
			say("published", "%s", formatTime(d.PublishedAt))
		}
	}
}
