package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
)

func subscriptionsCommand() *cobra.Command {
	c := listSubscriptionsCommand("subscriptions", "List, create and change subscriptions")
	c.Example = `  holdfast subscriptions add --store jobs.db --sink webhook --target https://example.com/hook --event failed --event 'group.*' --secret shop
  holdfast subscriptions disable ID --store jobs.db --reason "the receiver is being moved"
  holdfast subscriptions rewind ID 1200 --store jobs.db`
	c.AddCommand(
		listSubscriptionsCommand("list", "List subscriptions, newest first, with the number of undelivered events"), addSubscriptionCommand(),
		subscriptionActionCommand(removeSubscription, "Delete a subscription", "removed", ops.Operator.Unsubscribe),
		subscriptionActionCommand("disable", "Stop deliveries of a subscription until it is enabled (--reason is required)", "disabled", ops.Operator.DisableSubscription),
		subscriptionActionCommand("enable", "Enable a disabled subscription; it continues where it stopped", "enabled: events since it was disabled are delivered first", ops.Operator.EnableSubscription),
		rewindCommand(),
	)
	return c
}

func listSubscriptionsCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				subs, err := o.Subscriptions(ctx)
				if err != nil {
					return err
				}
				return show(c, subs, func(out io.Writer) { printSubscriptions(out, subs) })
			})
		},
	}
}

func printSubscriptions(out io.Writer, subs []ops.SubscriptionStatus) {
	if len(subs) == 0 {
		fmt.Fprintln(out, "no subscriptions: see 'holdfast subscriptions add --help'")
		return
	}
	rows := make([][]string, len(subs))
	for n, s := range subs {
		state := "enabled"
		if s.Disabled != "" {
			state = "disabled: " + short(s.Disabled, 40)
		}
		rows[n] = []string{s.ID.String(), orDash(s.Name), s.Sink, short(s.Target, 50), eventsText(s.Subscription), strconv.FormatInt(s.Lag, 10), strconv.FormatInt(s.Missed, 10), state}
	}
	table(out, []string{"SUBSCRIPTION", "NAME", "SINK", "TARGET", "EVENTS", "BEHIND", "MISSED", "STATE"}, rows)
}

// eventsText describes which events a subscription receives.
func eventsText(s subscription.Subscription) string {
	text := "all"
	if len(s.Events) > 0 {
		text = strings.Join(s.Events, " ")
	}
	for n, names := range [][]string{s.Kinds, s.Owners, s.Codes} {
		if len(names) > 0 {
			text += fmt.Sprintf("; %s %s", []string{"kinds", "owners", "codes"}[n], strings.Join(names, " "))
		}
	}
	if len(s.Groups) > 0 {
		text += fmt.Sprintf("; %d groups", len(s.Groups))
	}
	return text
}

func addSubscriptionCommand() *cobra.Command {
	var s subscription.Subscription
	var id string
	var groups []string
	var by *ops.Actor
	c := &cobra.Command{
		Use: "add", Short: "Create a subscription to future events; with --id, change one", Args: cobra.NoArgs,
		Long: `Creates a subscription. Secrets are given by name: workers read HOLDFAST_SECRET_<NAME> from their environment, or the file that
HOLDFAST_SECRET_<NAME>_FILE names. While a secret is being replaced, give two names, the newest first: both sign.`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if id != "" {
				if s.ID, err = holdfast.ParseID(id); err != nil {
					return err
				}
			}
			for _, group := range groups {
				g, err := holdfast.ParseID(group)
				if err != nil {
					return err
				}
				s.Groups = append(s.Groups, g)
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				kept, err := o.Subscribe(ctx, s, *by)
				if err != nil {
					return err
				}
				return show(c, kept, func(out io.Writer) {
					fmt.Fprintf(out, "subscribed %s: receives events after number %d\n", kept.ID, kept.Cursor)
				})
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&id, "id", "", "replace this subscription; it continues at the same event")
	flags.StringVar(&s.Name, "name", "", "name of the subscription")
	flags.StringVar(&s.Sink, "sink", "", "how events are delivered: webhook, mail, stream, or another sink of the workers")
	flags.StringVar(&s.Target, "target", "", "where they are delivered: a URL, mail addresses, or a NATS subject")
	flags.StringSliceVar(&s.Events, "event", nil, "only these events: failed, group.partial, breaker.*; all by default")
	flags.StringSliceVar(&s.Kinds, "kind", nil, "only events of jobs of these kinds")
	flags.StringSliceVar(&s.Owners, "owner", nil, "only events of these owners")
	flags.StringSliceVar(&s.Codes, "code", nil, "only events with these failure codes")
	flags.StringSliceVar(&groups, "group", nil, "only events of these groups and their members")
	flags.StringSliceVar(&s.Secrets, "secret", nil, "names of secrets, newest first; never the secrets themselves")
	flags.StringToStringVar(&s.Options, "option", nil, "options of the sink: name=value")
	by = addByFlags(c)
	return c
}

// removeSubscription is the command that deletes a subscription. It asks for confirmation.
const removeSubscription = "remove"

// subscriptionActionCommand makes a command that changes one subscription.
func subscriptionActionCommand(name, short, answer string, act func(o ops.Operator, ctx context.Context, id holdfast.ID, by ops.Actor) error) *cobra.Command {
	var by *ops.Actor
	c := &cobra.Command{
		Use: name + " SUBSCRIPTION", Short: short, Args: exactly("subscription"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				id, err := subscriptionID(ctx, o, args[0])
				if err != nil {
					return err
				}
				if name == removeSubscription {
					if err := confirm(c, "delete subscription "+id.String()+"? Its position in the feed is lost"); err != nil {
						return err
					}
				}
				return printAnswer(c)(answer, act(o, ctx, id, *by))
			})
		},
	}
	by = addByFlags(c)
	if name == removeSubscription {
		addYesFlag(c)
	}
	return c
}

func rewindCommand() *cobra.Command {
	var by *ops.Actor
	c := &cobra.Command{
		Use: "rewind SUBSCRIPTION NUMBER", Short: "Deliver again every event after a number, or with 'head' skip to new events", Args: exactly("subscription", "number"),
		RunE: func(c *cobra.Command, args []string) error {
			after, err := subscription.FromHead, error(nil)
			if args[1] != "head" {
				if after, err = strconv.ParseInt(args[1], 10, 64); err != nil || after < 0 {
					return usage(c, fmt.Errorf("number %q: give the number of an event, 0 for all events, or head", args[1]))
				}
			}
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				id, err := subscriptionID(ctx, o, args[0])
				if err != nil {
					return err
				}
				return printAnswer(c)("rewound to "+args[1], o.RewindSubscription(ctx, id, after, *by))
			})
		},
	}
	by = addByFlags(c)
	return c
}
