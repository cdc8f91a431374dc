package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/webhook"
)

// roleNotifier is the role of a notifier, which delivers events to subscriptions.
const roleNotifier = "notifier"

// runNotifier runs a notifier that may call receivers on loopback. Secrets come from the environment, as in production.
func runNotifier(ctx context.Context, p childSpec, r *recorder) error {
	hooks, err := webhook.New(webhook.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	if err != nil {
		return err
	}
	n, err := notify.New(r, notify.Config{
		Sinks:  map[string]notify.Sink{"webhook": hooks},
		Engine: engine.Config{Name: fmt.Sprintf("notifier-%d", p.N), Lease: p.Lease},
		Log:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	if err := n.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
