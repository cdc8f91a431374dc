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
	c := listSubscriptionsCommand("subscriptions", "Show and change who is told of what")
	c.Example = `  holdfast subscriptions add --store jobs.db --sink webhook --target https://example.com/hook --event failed --event 'group.*' --secret shop
  holdfast subscriptions disable ID --store jobs.db --reason "the receiver moves"
  holdfast subscriptions rewind ID 1200 --store jobs.db`
	c.AddCommand(
		listSubscriptionsCommand("list", "List subscriptions, the newest first, with how far behind each is"), addSubscriptionCommand(),
		onSubscriptionCommand("remove", "Forget a subscription", "removed", ops.Desk.Unsubscribe),
		onSubscriptionCommand("disable", "Tell a subscription nothing more until it is enabled (a reason is required)", "disabled", ops.Desk.DisableSubscription),
		onSubscriptionCommand("enable", "Let a subscription go on where it was disabled", "enabled: what it missed comes first", ops.Desk.EnableSubscription),
		rewindCommand(),
	)
	return c
}

func listSubscriptionsCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				subs, err := o.Subscriptions(ctx)
				if err != nil {
					return err
				}
				return show(c, subs, func(out io.Writer) { printSubscriptions(out, subs) })
			})
		},
	}
}

func printSubscriptions(out io.Writer, subs []ops.Subscribed) {
	if len(subs) == 0 {
		fmt.Fprintln(out, "nobody is told of anything: see 'holdfast subscriptions add --help'")
		return
	}
	rows := make([][]string, len(subs))
	for n, s := range subs {
		state := "enabled"
		if s.Disabled != "" {
			state = "disabled: " + short(s.Disabled, 40)
		}
		rows[n] = []string{s.ID.String(), orDash(s.Name), s.Sink, short(s.Target, 50), wants(s.Subscription), strconv.FormatInt(s.Lag, 10), strconv.FormatInt(s.Missed, 10), state}
	}
	table(out, []string{"SUBSCRIPTION", "NAME", "SINK", "TARGET", "WANTS", "BEHIND", "MISSED", "STATE"}, rows)
}

// wants says of what a subscription is told.
func wants(s subscription.Subscription) string {
	text := "everything"
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
	var by *ops.By
	c := &cobra.Command{
		Use: "add", Short: "Have somebody told of what happens from now on; with --id, change what is told and where", Args: cobra.NoArgs,
		Long: `Keeps a subscription. Secrets are given by name: workers look up HOLDFAST_SECRET_<NAME> in their environment, or the file that
HOLDFAST_SECRET_<NAME>_FILE names. Give the newest first: while a secret is being changed, two sign.`,
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
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				kept, err := o.Subscribe(ctx, s, *by)
				if err != nil {
					return err
				}
				return show(c, kept, func(out io.Writer) {
					fmt.Fprintf(out, "subscribed %s: told of what comes after event %d\n", kept.ID, kept.Cursor)
				})
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&id, "id", "", "replace this subscription; it goes on where it is")
	flags.StringVar(&s.Name, "name", "", "what people call it")
	flags.StringVar(&s.Sink, "sink", "", "how it is told: webhook, mail, stream, or what else the workers know")
	flags.StringVar(&s.Target, "target", "", "where: a URL, addresses, a subject")
	flags.StringSliceVar(&s.Events, "event", nil, "only these: failed, group.partial, breaker.*; everything when left out")
	flags.StringSliceVar(&s.Kinds, "kind", nil, "only of jobs of these kinds")
	flags.StringSliceVar(&s.Owners, "owner", nil, "only of these owners")
	flags.StringSliceVar(&s.Codes, "code", nil, "only with these codes")
	flags.StringSliceVar(&groups, "group", nil, "only of these groups and their members")
	flags.StringSliceVar(&s.Secrets, "secret", nil, "names of secrets, the newest first; never the secrets")
	flags.StringToStringVar(&s.Options, "option", nil, "what else the sink is to know: name=value")
	by = byWhom(c)
	return c
}

// onSubscriptionCommand makes a verb that decides on one subscription.
func onSubscriptionCommand(name, short, answer string, act func(o ops.Desk, ctx context.Context, id holdfast.ID, by ops.By) error) *cobra.Command {
	var by *ops.By
	c := &cobra.Command{
		Use: name + " SUBSCRIPTION", Short: short, Args: exactly("subscription"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Desk) error {
				id, err := subscriptionID(ctx, o, args[0])
				if err != nil {
					return err
				}
				return answered(c)(answer, act(o, ctx, id, *by))
			})
		},
	}
	by = byWhom(c)
	return c
}

func rewindCommand() *cobra.Command {
	var by *ops.By
	c := &cobra.Command{
		Use: "rewind SUBSCRIPTION NUMBER", Short: "Tell a subscription once more what came after a number, or with 'head' only what comes now", Args: exactly("subscription", "number"),
		RunE: func(c *cobra.Command, args []string) error {
			after, err := subscription.FromHead, error(nil)
			if args[1] != "head" {
				if after, err = strconv.ParseInt(args[1], 10, 64); err != nil || after < 0 {
					return usage(c, fmt.Errorf("number %q: give the number of an event, 0 for all there are, or head", args[1]))
				}
			}
			return withID(c, args[0], func(ctx context.Context, o ops.Desk) error {
				id, err := subscriptionID(ctx, o, args[0])
				if err != nil {
					return err
				}
				return answered(c)("rewound to "+args[1], o.RewindSubscription(ctx, id, after, *by))
			})
		},
	}
	by = byWhom(c)
	return c
}
