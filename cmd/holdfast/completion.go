package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/internal/config"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// completionLimit bounds how long a shell waits for completions.
const completionLimit = 200 * time.Millisecond

// A nameLister lists the names that complete an argument or a flag.
type nameLister func(ctx context.Context, o ops.Operator) ([]string, error)

// flagCompletions are the names that complete the values of flags, by flag name.
var flagCompletions = map[string]nameLister{
	"queue": queueNames, "to-queue": queueNames, "kind": kindNames, "dependency": dependencyNames,
	"code": func(ctx context.Context, o ops.Operator) (names []string, err error) {
		letters, _, err := o.DeadLetters(ctx, newestJobs)
		for _, l := range letters {
			names = append(names, l.Code.Name)
		}
		return names, err
	},
}

// newestJobs selects the newest jobs.
var newestJobs = store.Filter{Limit: 200}

// fixedCompletions are the values of flags that accept one of a few, by "command flag".
var fixedCompletions = map[string][]string{
	"jobs state":    {"queued", "processing", "complete", "failed", "cancelled"},
	"groups state":  {"open", "processing", "ready", "partial", "failed", "cancelled", "expired"},
	"list state":    {"open", "processing", "ready", "partial", "failed", "cancelled", "expired"},
	"create scope":  {"viewer", "worker", "operator", "admin"},
	"resume source": {"operator", "budget", "limit", "window", "handler"},
}

// addCompletions registers shell completions for a command and its subcommands. Names come from the store or the server.
func addCompletions(root *cobra.Command) {
	for _, c := range root.Commands() {
		addCompletions(c)
	}
	for name, list := range flagCompletions {
		if c := root; c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
				return list.complete(c, prefix), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
	for key, values := range fixedCompletions {
		command, flag, _ := strings.Cut(key, " ")
		if root.Name() == command && root.Flags().Lookup(flag) != nil {
			_ = root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, s := range config.Settings {
		if len(s.Choices) > 0 && root.Flags().Lookup(s.Name) != nil {
			_ = root.RegisterFlagCompletionFunc(s.Name, cobra.FixedCompletions(s.Choices, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	if strings.HasSuffix(root.Use, " DEPENDENCY") {
		root.ValidArgsFunction = func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return nameLister(dependencyNames).complete(c, prefix), cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// complete lists the names that begin with prefix. It returns none when the store or the server does not answer within completionLimit.
func (n nameLister) complete(c *cobra.Command, prefix string) []string {
	ctx, cancel := context.WithTimeout(c.Context(), completionLimit)
	defer cancel()
	answer := make(chan []string, 1)
	go func() {
		t, err := openTarget(c)
		if err != nil {
			answer <- nil
			return
		}
		defer t.close() //nolint:errcheck // nothing was written
		names, _ := n(ctx, t.operator)
		answer <- names
	}()
	select {
	case names := <-answer:
		slices.Sort(names)
		names = slices.Compact(names)
		return slices.DeleteFunc(names, func(name string) bool { return name == "" || !strings.HasPrefix(name, prefix) })
	case <-ctx.Done():
		return nil
	}
}

func queueNames(ctx context.Context, o ops.Operator) (names []string, err error) {
	stats, err := o.Stats(ctx)
	for _, q := range stats.Queues {
		names = append(names, q.Queue)
	}
	return names, err
}

func dependencyNames(ctx context.Context, o ops.Operator) (names []string, err error) {
	breakers, err := o.Breakers(ctx)
	for _, b := range breakers {
		names = append(names, b.Dependency)
	}
	return names, err
}

// kindNames lists the kinds of live workers and of the newest jobs.
func kindNames(ctx context.Context, o ops.Operator) (names []string, err error) {
	workers, err := o.Workers(ctx)
	for _, w := range workers {
		names = append(names, w.Kinds...)
	}
	if err != nil {
		return names, err
	}
	jobs, _, err := o.Jobs(ctx, newestJobs)
	for _, job := range jobs {
		names = append(names, job.Kind)
	}
	return names, err
}
