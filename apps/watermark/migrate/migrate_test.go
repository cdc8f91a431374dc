package migrate_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
	"github.com/holdfastdev/holdfast/apps/watermark/migrate"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/testprograms"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestMain(m *testing.M) {
	if _, err := testprograms.FFmpeg.Ensure(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// old is a database of the old program before its migration 006: jobs have no columns for retries, and campaigns know four states.
var old = []string{
	`CREATE TABLE accounts (id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, name TEXT NOT NULL, password_hash TEXT NOT NULL, created_at TEXT NOT NULL)`,
	`CREATE TABLE assets (id TEXT PRIMARY KEY, account_id TEXT NOT NULL, title TEXT NOT NULL, original_path TEXT NOT NULL, file_size_bytes INTEGER NOT NULL, duration_secs REAL, resolution_w INTEGER, resolution_h INTEGER, created_at TEXT NOT NULL)`,
	`CREATE TABLE recipients (id TEXT PRIMARY KEY, account_id TEXT NOT NULL, name TEXT NOT NULL, email TEXT NOT NULL)`,
	`CREATE TABLE campaigns (id TEXT PRIMARY KEY, account_id TEXT NOT NULL REFERENCES accounts(id) ON DELETE CASCADE, asset_id TEXT NOT NULL REFERENCES assets(id), name TEXT NOT NULL, max_downloads INTEGER, expires_at TEXT,
		visible_wm INTEGER NOT NULL DEFAULT 1, invisible_wm INTEGER NOT NULL DEFAULT 1, state TEXT NOT NULL DEFAULT 'DRAFT' CHECK (state IN ('DRAFT','PROCESSING','READY','EXPIRED')), created_at TEXT NOT NULL, published_at TEXT)`,
	`CREATE TABLE download_tokens (id TEXT PRIMARY KEY, campaign_id TEXT NOT NULL, recipient_id TEXT NOT NULL, download_count INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL, watermarked_path TEXT, created_at TEXT NOT NULL)`,
	`CREATE TABLE jobs (id TEXT PRIMARY KEY, job_type TEXT NOT NULL, campaign_id TEXT, token_id TEXT, state TEXT NOT NULL, progress INTEGER NOT NULL DEFAULT 0, error_message TEXT, created_at TEXT NOT NULL, started_at TEXT, completed_at TEXT)`,

	`INSERT INTO accounts VALUES ('a1', 'ada@example.org', 'Ada', 'x', '2026-01-01T00:00:00.000Z')`,
	`INSERT INTO assets VALUES ('v1', 'a1', 'Trailer', 'video.mp4', 1000, 2.0, 320, 180, '2026-01-02T00:00:00.000Z'), ('v2', 'a1', 'Never used', 'video.mp4', 1000, 2.0, 320, 180, '2026-01-02T00:00:00.000Z')`,
	`INSERT INTO recipients VALUES ('r1', 'a1', 'Grace', 'grace@example.org'), ('r2', 'a1', 'Olga', 'olga@example.org'), ('r3', 'a1', 'Mary', 'mary@example.org')`,
	`INSERT INTO campaigns VALUES ('c1', 'a1', 'v1', 'Spring', 3, NULL, 1, 0, 'READY', '2026-01-03T00:00:00.000Z', '2026-01-03T10:00:00.000Z'),
		('c2', 'a1', 'v1', 'A draft', NULL, '2036-01-01T00:00:00Z', 0, 1, 'DRAFT', '2026-01-04T00:00:00.000Z', NULL)`,
	`INSERT INTO download_tokens VALUES ('t1', 'c1', 'r1', 2, 'ACTIVE', 'copy.mp4', '2026-01-03T00:00:00.001Z'), ('t2', 'c1', 'r2', 0, 'PENDING', NULL, '2026-01-03T00:00:00.002Z'),
		('t3', 'c1', 'r3', 0, 'PENDING', NULL, '2026-01-03T00:00:00.003Z'), ('t4', 'c2', 'r1', 0, 'PENDING', NULL, '2026-01-04T00:00:00.001Z')`,
	`INSERT INTO jobs VALUES ('j1', 'watermark_video', 'c1', 't1', 'COMPLETED', 100, NULL, '2026-01-03T10:00:00.000Z', NULL, NULL), ('j2', 'watermark_video', 'c1', 't2', 'FAILED', 10, 'exit status 137', '2026-01-03T10:00:00.000Z', NULL, NULL),
		('j3', 'watermark_video', 'c1', 't3', 'RUNNING', 50, NULL, '2026-01-03T10:00:00.000Z', NULL, NULL)`,
}

// A scene is a new service and an old database.
type scene struct {
	*testing.T
	migrate.Import
	jobs store.Store
}

func newScene(t *testing.T) *scene {
	t.Helper()
	ctx, folder := t.Context(), t.TempDir()
	address := filepath.Join(folder, "jobs.db")
	jobs, err := anystore.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	from, err := database.Open(ctx, filepath.Join(folder, "old.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(from.Close(), db.Close(), jobs.Close()); err != nil {
			t.Error(err)
		}
	})
	s := &scene{T: t, jobs: jobs, Import: migrate.Import{Old: from, Folder: folder}}
	for _, statement := range old {
		if err := from.Write(ctx, func(tx *database.Tx) error { return tx.Exec(ctx, statement) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"video.mp4", "copy.mp4"} {
		out, err := exec.Command("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=10:d=2", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", filepath.Join(folder, name)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if s.Accounts, err = account.Open(ctx, db, account.Config{KeyPrefix: "wm"}); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(folder, "data")
	s.Campaigns, err = campaign.New(ctx, campaign.Config{
		Jobs: jobs, Operator: ops.New(jobs, ops.Config{Taxonomy: code.Taxonomy()}), DB: db, Folder: data, Secret: bytes.Repeat([]byte{5}, 32), Tools: media.Tools{Preset: "ultrafast"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) run() migrate.Report {
	s.Helper()
	r, err := s.Import.Run(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func (s *scene) work() {
	s.Helper()
	e, err := engine.New(s.jobs, engine.Config{Queues: []string{campaign.Queue, campaign.QueueNotice}, Slots: 2, Taxonomy: code.Taxonomy(), Classify: code.Classify, Poll: 50 * time.Millisecond})
	if err != nil {
		s.Fatal(err)
	}
	s.Campaigns.Register(e)
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			s.Error(err)
		}
	})
}

func (s *scene) until(owner string, want campaign.State) campaign.Campaign {
	s.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	limit := time.After(2 * time.Minute)
	for {
		c, err := s.Campaigns.Campaign(s.Context(), owner, "c1")
		if err != nil {
			s.Fatal(err)
		}
		if c.State == want {
			return c
		}
		select {
		case <-every.C:
		case <-limit:
			s.Fatalf("the campaign is %s, want %s", c.State, want)
		}
	}
}

// W10: the database of the seed before its migration 006 is taken over without a loss, and a second run changes nothing.
func TestTheOldDatabaseIsTakenOverWithoutLossAndOnce(t *testing.T) {
	s := newScene(t)
	r := s.run()
	if r.Accounts != 1 || r.Campaigns != 2 || r.Tokens != 4 || len(r.Passwords) != 1 {
		t.Errorf("%+v", r)
	}
	if again := s.run(); again.Accounts != 0 || again.Campaigns != 0 || again.Known != 2 || len(again.Passwords) != 0 {
		t.Errorf("a second run: %+v", again)
	}
	user, err := s.Accounts.UserByEmail(t.Context(), "ada@example.org")
	if err != nil {
		t.Fatal(err)
	}
	of, err := s.Accounts.Organisations(t.Context(), user.ID)
	if err != nil {
		t.Fatal(err)
	}
	owner := of[0].ID
	if assets, err := s.Campaigns.Assets(t.Context(), owner, 10); err != nil || len(assets) != 2 {
		t.Errorf("%d videos, %v", len(assets), err)
	}
	draft, err := s.Campaigns.Campaign(t.Context(), owner, "c2")
	if err != nil || draft.State != campaign.Draft || draft.ExpiresAt.Year() != 2036 || draft.Visible || !draft.Invisible {
		t.Errorf("%+v, %v", draft, err)
	}
	s.work()
	c := s.until(owner, campaign.Partial)
	tokens, err := s.Campaigns.Tokens(t.Context(), c)
	if err != nil || len(tokens) != 3 {
		t.Fatal(tokens, err)
	}
	if first := tokens[0]; first.Status != campaign.TokenActive || first.Downloads != 2 || first.Secret != "t1" || first.Name != "Grace" {
		t.Errorf("a copy that existed: %+v", first)
	}
	if second := tokens[1]; second.Status != campaign.TokenFailed || !strings.Contains(second.Error, "exit status 137") {
		t.Errorf("a job that had failed: %+v", second)
	}
	if third := tokens[2]; third.Status != campaign.TokenActive {
		t.Errorf("a job that was running: %+v", third)
	}
	if _, err := s.Campaigns.Retry(t.Context(), owner, "c1", "t2", "Ada"); err != nil {
		t.Fatal(err)
	}
	s.until(owner, campaign.Ready)
}
