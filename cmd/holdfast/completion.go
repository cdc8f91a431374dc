package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/config"
	"github.com/holdfastdev/holdfast/ops"
)

// completionLimit is how long whoever presses the tab key is kept waiting.
const completionLimit = 200 * time.Millisecond

// A namer lists names that a shell may offer.
type namer func(ctx context.Context, o ops.Desk) ([]string, error)

// offered says for flags what a shell may offer behind them.
var offered = map[string]namer{
	"queue": queueNames, "to-queue": queueNames, "kind": kindNames, "dependency": dependencyNames,
	"code": func(ctx context.Context, o ops.Desk) (names []string, err error) {
		letters, _, err := o.DeadLetters(ctx, anything)
		for _, l := range letters {
			names = append(names, l.Code.Name)
		}
		return names, err
	},
}

// anything is the newest of whatever there is.
var anything = holdfast.Filter{Limit: 200}

// fixedWords are what there is to say behind flags that take one of a few, by the verb's name and the flag's.
var fixedWords = map[string][]string{
	"jobs state":    {"queued", "processing", "complete", "failed", "cancelled"},
	"groups state":  {"open", "processing", "ready", "partial", "failed", "cancelled", "expired"},
	"list state":    {"open", "processing", "ready", "partial", "failed", "cancelled", "expired"},
	"create scope":  {"viewer", "worker", "operator", "admin"},
	"resume source": {"operator", "budget", "limit", "window", "handler"},
}

// completed lets a shell complete names, by asking the store or the server.
func completed(root *cobra.Command) {
	for _, c := range root.Commands() {
		completed(c)
	}
	for name, ask := range offered {
		if c := root; c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
				return ask.offer(c, begun), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
	for at, words := range fixedWords {
		verb, flag, _ := strings.Cut(at, " ")
		if root.Name() == verb && root.Flags().Lookup(flag) != nil {
			_ = root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, s := range config.Settings {
		if len(s.Choices) > 0 && root.Flags().Lookup(s.Name) != nil {
			_ = root.RegisterFlagCompletionFunc(s.Name, cobra.FixedCompletions(s.Choices, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	if strings.HasSuffix(root.Use, " DEPENDENCY") {
		root.ValidArgsFunction = func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return namer(dependencyNames).offer(c, begun), cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// offer asks, within the limit. A shell that hears nothing offers nothing.
func (n namer) offer(c *cobra.Command, begun string) []string {
	ctx, enough := context.WithTimeout(c.Context(), completionLimit)
	defer enough()
	answer := make(chan []string, 1)
	go func() {
		p, err := openPlace(c)
		if err != nil {
			answer <- nil
			return
		}
		defer p.close() //nolint:errcheck // nothing was written
		names, _ := n(ctx, p.desk)
		answer <- names
	}()
	select {
	case names := <-answer:
		slices.Sort(names)
		names = slices.Compact(names)
		return slices.DeleteFunc(names, func(name string) bool { return name == "" || !strings.HasPrefix(name, begun) })
	case <-ctx.Done():
		return nil
	}
}

func queueNames(ctx context.Context, o ops.Desk) (names []string, err error) {
	stats, err := o.Stats(ctx)
	for _, q := range stats.Queues {
		names = append(names, q.Queue)
	}
	return names, err
}

func dependencyNames(ctx context.Context, o ops.Desk) (names []string, err error) {
	breakers, err := o.Breakers(ctx)
	for _, b := range breakers {
		names = append(names, b.Dependency)
	}
	return names, err
}

// kindNames are those of workers that are alive and of the newest jobs.
func kindNames(ctx context.Context, o ops.Desk) (names []string, err error) {
	workers, err := o.Workers(ctx)
	for _, w := range workers {
		names = append(names, w.Kinds...)
	}
	if err != nil {
		return names, err
	}
	jobs, _, err := o.Jobs(ctx, anything)
	for _, job := range jobs {
		names = append(names, job.Kind)
	}
	return names, err
}
