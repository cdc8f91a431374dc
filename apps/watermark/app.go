package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/internal/notice"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/apps/watermark/site"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// An app is one process of the watermark service.
type app struct {
	set       settings
	log       *slog.Logger
	jobs      store.Store
	operator  *ops.Service
	db        *database.DB
	accounts  *account.Service
	campaigns *campaign.Service
	health    *web.Health
	site      http.Handler
	closers   []func() error // in the order of opening
}

// open opens everything that a process needs.
func open(ctx context.Context, set settings, log *slog.Logger) (_ *app, err error) {
	a := &app{set: set, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if err := set.Tools.Check(); err != nil {
		return nil, fmt.Errorf("FFMPEG: %w. Install it (Debian: apt-get install ffmpeg; macOS: brew install ffmpeg)", err)
	}
	if err := os.MkdirAll(set.Data, 0o700); err != nil {
		return nil, fmt.Errorf("DATA_DIR: %w", err)
	}
	if err := a.openStore(ctx); err != nil {
		return nil, err
	}
	secret, err := readSecret(filepath.Join(set.Data, "mark-secret"))
	if err != nil {
		return nil, fmt.Errorf("DATA_DIR: %w", err)
	}
	if a.accounts, err = account.Open(ctx, a.db, account.Config{KeyPrefix: "wm"}); err != nil {
		return nil, err
	}
	guard, err := safehttp.New(set.network())
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, func() error { guard.Close(); return nil })
	hooks := &notice.Hooks{Guard: guard, Secret: secret}
	notices, err := a.notices(hooks)
	if err != nil {
		return nil, err
	}
	a.campaigns, err = campaign.New(ctx, campaign.Config{
		Jobs: a.jobs, Operator: a.operator, DB: a.db, Folder: set.Data, Tools: set.Tools, Secret: secret, Log: log, Notices: notices,
		Upload: int64(set.Upload) << 20, Public: set.Public,
	})
	if err != nil {
		return nil, err
	}
	a.openSite(hooks)
	return a, a.campaigns.Sweep(ctx)
}

func (a *app) openStore(ctx context.Context) (err error) {
	if err := setting.MakeFolder(a.set.Store); err != nil {
		return err
	}
	if a.jobs, err = anystore.Open(ctx, a.set.Store); err != nil {
		return err
	}
	a.closers = append(a.closers, a.jobs.Close)
	if a.db, err = database.Open(ctx, a.set.Store); err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	a.closers = append(a.closers, a.db.Close)
	a.operator = ops.New(a.jobs, ops.Config{Taxonomy: code.Taxonomy(), Retention: campaign.Retention()})
	return nil
}

// notices says how owners are reached: all members of an organisation by mail, and its webhook.
func (a *app) notices(hooks *notice.Hooks) (campaign.Notices, error) {
	n := campaign.Notices{
		Contacts: func(ctx context.Context, owner string) (list []string, err error) {
			members, err := a.accounts.Members(ctx, owner)
			for _, m := range members {
				list = append(list, m.User.Email)
			}
			return list, err
		},
		Call: func(ctx context.Context, id string, h campaign.Hook) error {
			return hooks.Call(ctx, id, h.Owner, h.URL, notice.HookMessage{Type: "campaign_ready", Timestamp: h.At, Data: map[string]any{
				"campaign_id": h.Campaign, "name": h.Name, "state": h.State, "completed": h.Ready, "failed": h.Failed,
			}})
		},
	}
	if a.set.Mail.Address == "" {
		return n, nil
	}
	mailer, err := notice.NewMailer(a.set.Mail)
	if err != nil {
		return n, fmt.Errorf("MAIL_SERVER: %w", err)
	}
	n.Send = func(ctx context.Context, id string, l campaign.Letter) error {
		return mailer.Send(ctx, id, notice.Letter{To: l.To, Subject: l.Subject, Text: l.Text})
	}
	return n, nil
}

const secretBytes = 32

// readSecret returns the secret of all marks. The first start makes it. A backup of it must be kept apart from this machine: without it no mark can be read.
func readSecret(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		secret := make([]byte, secretBytes)
		_, _ = rand.Read(secret) // it never fails
		return secret, os.WriteFile(path, []byte(hex.EncodeToString(secret)+"\n"), 0o600)
	}
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) < secretBytes {
		return nil, fmt.Errorf("%s is damaged: restore it from a backup, or no mark can be read", path)
	}
	return secret, nil
}

// openSite makes the HTTP side of this process.
func (a *app) openSite(hooks *notice.Hooks) {
	mux := http.NewServeMux()
	a.health = web.NewHealth(a.log,
		web.Check{Name: "store", Ask: func(ctx context.Context) error { _, err := a.jobs.Holds(ctx); return err }},
		web.Check{Name: "ffmpeg", Ask: func(context.Context) error { return a.set.Tools.Check() }, Optional: true},
	)
	mux.HandleFunc("GET /healthz", a.health.Alive)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer, status := a.health.Ready(r.Context())
		_ = web.WriteJSON(w, status, answer) // it always marshals
	})
	pages := site.New(site.Config{
		Campaigns: a.campaigns, Accounts: a.accounts, Log: a.log, SignUp: !a.set.SignUpOff, Folder: a.set.Data, Upload: int64(a.set.Upload) << 20,
		KeptMail: a.set.Mail.Address == "", HookSecret: hooks.SecretOf, Public: a.set.Public,
	})
	pages.Mount(mux)
	outer := web.Site{Addr: a.set.Addr, Hosts: a.set.Hosts, TrustProxy: a.set.TrustProxy, Log: a.log, Count: site.NoMetrics{}, Refused: pages.Refused}
	a.site = outer.Handler(mux)
}

// ServeHTTP answers a request, and logs it.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.site.ServeHTTP(w, r) }

// Drain makes /readyz report that the process is about to stop. Requests are still answered.
func (a *app) Drain() { a.health.Drain() }

// Close ends event streams; there are none.
func (a *app) Close() error { return nil }

// close closes everything in the reverse order of opening.
func (a *app) close() error {
	var all []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		all = append(all, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(all...)
}

// noticeSlots is how many notices a process sends at once.
const noticeSlots = 2

// engine returns the engine of this process. Searches have a slot of their own, so that they do not wait for copies.
func (a *app) engine() (*engine.Engine, error) {
	e, err := engine.New(a.jobs, engine.Config{
		Queues: []string{campaign.Queue, campaign.QueueFind, campaign.QueueNotice}, Slots: a.set.Workers + 1 + noticeSlots,
		QueueSlots: map[string]int{campaign.Queue: a.set.Workers, campaign.QueueFind: 1, campaign.QueueNotice: noticeSlots},
		Prefetch:   -1, Lease: a.set.Lease, Grace: a.set.Grace, Taxonomy: code.Taxonomy(), Classify: code.Classify, Log: a.log,
		Retention: campaign.Retention(), RetentionWarning: -1, Duties: a.campaigns.Duties(),
	})
	if err != nil {
		return nil, err
	}
	a.campaigns.Register(e)
	return e, nil
}
