package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// withStore opens a store between two commands.
func withStore(t *testing.T, address string, do func(ctx context.Context, s store.Store)) {
	t.Helper()
	s, err := anystore.Open(t.Context(), address)
	ok(t, err)
	defer s.Close()
	do(t.Context(), s)
}

// settleGroups runs the duties that sequence events and settle groups, until nothing is left.
func settleGroups(t *testing.T, address string) {
	t.Helper()
	withStore(t, address, func(ctx context.Context, s store.Store) {
		for {
			pages, err := s.Sequence(ctx, 100)
			ok(t, err)
			done, err := s.AdvanceGroups(ctx, 100)
			ok(t, err)
			if pages+done == 0 {
				return
			}
		}
	})
}

// settleNext claims the next job of a queue and ends it.
func settleNext(t *testing.T, ctx context.Context, s store.Store, queue string, to holdfast.State) holdfast.ID {
	t.Helper()
	leases, err := s.Claim(ctx, store.Claim{Worker: "w", Queues: []string{queue}, Limit: 1, Start: 1, Lease: time.Minute})
	ok(t, err)
	if len(leases) != 1 {
		t.Fatalf("queue %s has nothing to claim", queue)
	}
	settlement := store.Settlement{Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: to, Took: time.Millisecond}
	if to == holdfast.Failed {
		settlement.Charge, settlement.Limit, settlement.Failure = store.ChargeFailure, 1, &holdfast.Failure{Code: "GW_5XX", Category: "dependency", Message: "The gateway is having trouble."}
	}
	answers, err := s.Settle(ctx, []store.Settlement{settlement})
	ok(t, err)
	ok(t, answers[0])
	return leases[0].ID
}

func TestAGroupIsShownRetriedAndCancelled(t *testing.T) {
	address := filepath.Join(t.TempDir(), "jobs.db")
	var group, follower string
	withStore(t, address, func(ctx context.Context, s store.Store) {
		g, err := s.CreateGroup(ctx, holdfast.Group{Name: "spring", Owner: "acme", Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "report", Queue: "other"}}}})
		ok(t, err)
		first, last := holdfast.NewID(), holdfast.NewID()
		_, err = s.Enqueue(ctx, []holdfast.Draft{{ID: first, Kind: "mail", Group: g.ID}, {ID: last, Kind: "mail", Group: g.ID, After: []holdfast.ID{first}}})
		ok(t, err)
		settleNext(t, ctx, s, "default", holdfast.Failed)
		group, follower = g.ID.String(), last.String()
	})
	runSteps(t, address, []step{
		{"groups", exitOK, "spring"},
		{"groups list --state ready", exitOK, "no groups match"},
		{"explain " + follower, exitOK, "have ended: it starts, or is cancelled"},
		{"groups seal " + group + " --actor ada --owner other", exitNotFound, ""},
		{"groups seal " + group + " --actor ada", exitOK, "sealed"},
	})
	settleGroups(t, address)
	runSteps(t, address, []step{
		{"groups show " + group, exitOK, "0 of 2 complete, 1 failed, 1 cancelled"},
		{"groups show " + group, exitOK, "holdfast groups retry " + group},
		{"groups show " + group, exitOK, "enqueues report when the group is ready, partial or failed"},
		{"groups show --json " + group, exitOK, `"state": "failed"`},
		{"groups graph " + group, exitOK, "└─ mail  cancelled        mail is complete"},
		{"groups graph " + group, exitOK, "failed (GW_5XX)"},
		{"groups graph --json " + group, exitOK, `"layer": 1`},
		{"groups graph " + holdfast.NewID().String(), exitNotFound, ""},
		{"explain " + follower, exitOK, "which it waited for, did not complete"},
		{"jobs --queue other", exitOK, "report"},
		{"groups cancel --yes " + group + " --actor ada", exitConflict, ""},
		{"groups retry " + group + " --actor ada", exitError, ""},
		{"groups retry --yes " + group + " --actor ada --request T-1 --reason 'paper again'", exitOK, "2 members are queued again"},
		{"groups retry --yes " + group + " --actor ada", exitConflict, ""},
		{"groups --json --state processing", exitOK, `"generation": 2`},
		{"groups cancel --yes " + group + " --actor ada", exitOK, "cancelling"},
		{"groups show " + holdfast.NewID().String(), exitNotFound, ""},
		{"groups show spring", exitUsage, ""},
		{"audit --subject group/" + group, exitOK, "T-1"},
	})
	settleGroups(t, address)
	runSteps(t, address, []step{
		{"groups list --state cancelled", exitOK, "spring"},
		{"audit --actor ada --json", exitOK, `"request": "T-1"`},
		{"audit --actor bob", exitOK, "no entries match"},
		{"audit --job " + follower + " --subject retention", exitUsage, ""},
		{"events --event 'group.*'", exitOK, "group.cancelled"},
		{"doctor", exitOK, "no invariant is broken"},
	})
}

func TestEventsArePrintedInOrder(t *testing.T) {
	address, failed, _ := newTestStore(t)
	runSteps(t, address, []step{
		{"events", exitOK, ""},
		{"subscriptions add --sink webhook --target https://example.com/hook --secret shop --event '*' --actor ada", exitOK, "subscribed"},
		{"retry " + failed.String() + " --actor ada", exitOK, "queued again"},
	})
	withStore(t, address, func(ctx context.Context, s store.Store) {
		settleNext(t, ctx, s, "default", holdfast.Complete)
	})
	settleGroups(t, address)
	runSteps(t, address, []step{
		{"events --after 0", exitOK, "subscription.subscribed"},
		{"events --after 0 --event complete", exitOK, "job.complete"},
		{"events --after 100000", exitUsage, ""},
		{"events --limit 0", exitUsage, ""},
		{"events --group x", exitUsage, ""},
	})
	code, out, stderr := command(t, "events", "--after", "0", "--json", "--store", address)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var last int64
	for line := range strings.Lines(out) {
		var e store.Event
		if err := api.Unmarshal([]byte(line), &e); err != nil || e.Seq != last+1 {
			t.Errorf("event %d came after %d: %v", e.Seq, last, err)
		}
		last = e.Seq
	}
	if last < 4 {
		t.Errorf("only %d events were printed:\n%s", last, out)
	}
	ctx, enough := context.WithCancel(t.Context())
	reader, writer, err := os.Pipe()
	ok(t, err)
	followed := make(chan int)
	go func() {
		followed <- run(ctx, []string{"events", "--follow", "--after", "0", "--json", "--store", address}, writer, writer)
		_ = writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	for range last {
		var e store.Event
		if lines.Scan() {
			ok(t, api.Unmarshal(lines.Bytes(), &e))
		}
		ok(t, lines.Err())
	}
	enough()
	if code := <-followed; code != exitOK {
		t.Errorf("after the cancellation it ended with exit code %d", code)
	}
}

func TestSubscriptionsAndDeliveriesAreManaged(t *testing.T) {
	address, failed, _ := newTestStore(t)
	code, out, stderr := command(t, "subscriptions", "add", "--name", "alarm", "--sink", "webhook", "--target", "https://example.com/hook", "--event", "failed,group.*", "--kind", "mail", "--secret", "shop", "--actor", "ada", "--json", "--store", address)
	var sub subscription.Subscription
	if err := json.Unmarshal([]byte(out), &sub); err != nil || code != exitOK {
		t.Fatalf("exit %d: %v\n%s%s", code, err, out, stderr)
	}
	id := sub.ID.String()
	var delivery string
	withStore(t, address, func(ctx context.Context, s store.Store) {
		ok(t, s.Apply(ctx, store.Change{Deliver: []holdfast.Draft{{Kind: "holdfast.webhook", Queue: subscription.Queue, Owner: subscription.Owner(sub.ID)}}}))
		delivery = settleNext(t, ctx, s, subscription.Queue, holdfast.Failed).String()
	})
	runSteps(t, address, []step{
		{"subscriptions", exitOK, "failed group.*; kinds mail"},
		{"subscriptions list --json", exitOK, `"lag": `},
		{"subscriptions add --sink webhook --target https://example.com/hook --secret whsec_c2VjcmV0c2VjcmV0c2VjcmV0 --actor ada", exitUsage, ""},
		{"subscriptions add --sink webhook --target https://example.com/hook --actor ada", exitUsage, ""}, // without a secret
		{"subscriptions add --sink webhook --target nowhere --secret shop --actor ada", exitUsage, ""},
		{"subscriptions add --sink mail --target nobody --actor ada", exitUsage, ""},
		{"subscriptions disable --actor ada " + id, exitUsage, ""},
		{"subscriptions disable --actor ada --reason 'it moves' " + id, exitOK, "disabled"},
		{"subscriptions", exitOK, "disabled: it moves"},
		{"subscriptions enable --actor ada " + id, exitOK, "enabled"},
		{"subscriptions enable --actor ada " + id, exitConflict, ""},
		{"subscriptions rewind --actor ada " + id + " 0", exitOK, "rewound to 0"},
		{"subscriptions rewind --actor ada " + id + " head", exitOK, "rewound to head"},
		{"subscriptions rewind --actor ada " + id + " soon", exitUsage, ""},
		{"deliveries", exitOK, "holdfast.webhook"},
		{"deliveries list --state failed --subscription " + id + " --json", exitOK, `"code": "GW_5XX"`},
		{"deliveries list --subscription " + failed.String(), exitOK, "no deliveries match"},
		{"deliveries show " + delivery, exitOK, "The gateway is having trouble."},
		{"deliveries show " + failed.String(), exitNotFound, ""},
		{"deliveries resend --actor ada " + delivery, exitOK, "queued as " + delivery},
		{"deliveries resend --actor ada " + delivery, exitConflict, ""},
		{"subscriptions remove --actor ada " + id, exitError, ""},
		{"subscriptions remove --yes --actor ada " + id, exitOK, "removed"},
		{"subscriptions remove --yes --actor ada " + id, exitNotFound, ""},
		{"subscriptions", exitOK, "no subscriptions"},
	})
}
