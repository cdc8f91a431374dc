package campaign_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/apps/watermark/detect"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/internal/testprograms"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestMain(m *testing.M) {
	if _, err := testprograms.FFmpeg.Ensure(); err != nil {
		panic(err)
	}
	pgtest.Main(m)
}

const owner = "studio"

// A scene is a service with its store and, once work was called, a worker.
type scene struct {
	*testing.T
	*campaign.Service
	jobs   store.Store
	folder string
	mu     sync.Mutex
	at     time.Time
}

func newScene(t *testing.T, address string) *scene {
	t.Helper()
	ctx := t.Context()
	jobs, err := anystore.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), jobs.Close()); err != nil {
			t.Error(err)
		}
	})
	s := &scene{T: t, jobs: jobs, folder: t.TempDir(), at: time.Now()}
	s.Service, err = campaign.New(ctx, campaign.Config{
		Jobs: jobs, Operator: ops.New(jobs, ops.Config{Taxonomy: code.Taxonomy()}), DB: db, Folder: s.folder, Secret: bytes.Repeat([]byte{5}, 32),
		Tools: media.Tools{Preset: "ultrafast"}, Now: func() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.at },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func onBoth(t *testing.T, test func(s *scene)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(newScene(t, filepath.Join(t.TempDir(), "jobs.db"))) })
	t.Run("postgres", func(t *testing.T) { test(newScene(t, storefixture.Database(t))) })
}

func (s *scene) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(d)
}

// asset uploads a small video.
func (s *scene) asset() campaign.Asset {
	s.Helper()
	path := filepath.Join(s.folder, "upload")
	out, err := exec.Command("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=s=640x360:r=10:d=2", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-f", "mp4", path).CombinedOutput()
	if err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
	a, err := s.AddAsset(s.Context(), owner, "Trailer", path)
	if err != nil {
		s.Fatal(err)
	}
	return a
}

// draft creates a campaign with recipients.
func (s *scene) draft(recipients int, plan campaign.Plan) campaign.Campaign {
	s.Helper()
	if plan.Asset == "" {
		plan.Asset = s.asset().ID
	}
	plan.Name, plan.Invisible = "Spring", true
	c, err := s.Create(s.Context(), owner, plan)
	if err != nil {
		s.Fatal(err)
	}
	var list []campaign.Recipient
	for n := range recipients {
		list = append(list, campaign.Recipient{Name: fmt.Sprintf("Recipient %d", n), Email: fmt.Sprintf("r%d@example.org", n)})
	}
	if err := s.AddRecipients(s.Context(), owner, c.ID, list); err != nil {
		s.Fatal(err)
	}
	return c
}

func (s *scene) publish(c campaign.Campaign) campaign.Campaign {
	s.Helper()
	c, err := s.Publish(s.Context(), owner, c.ID)
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// work runs a worker until the test ends.
func (s *scene) work() {
	s.Helper()
	e, err := engine.New(s.jobs, engine.Config{Queues: []string{campaign.Queue}, Slots: 2, Taxonomy: code.Taxonomy(), Classify: code.Classify, Poll: 50 * time.Millisecond})
	if err != nil {
		s.Fatal(err)
	}
	s.Register(e)
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

// until waits until a campaign has a state.
func (s *scene) until(c campaign.Campaign, want campaign.State) campaign.Campaign {
	s.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	limit := time.After(2 * time.Minute)
	for {
		now, err := s.Campaign(s.Context(), owner, c.ID)
		if err != nil {
			s.Fatal(err)
		}
		if now.State == want {
			return now
		}
		select {
		case <-every.C:
		case <-limit:
			s.Fatalf("the campaign is %s (%+v), want %s", now.State, now.Members, want)
		}
	}
}

func (s *scene) tokens(c campaign.Campaign) []campaign.Token {
	s.Helper()
	list, err := s.Tokens(s.Context(), c)
	if err != nil {
		s.Fatal(err)
	}
	return list
}

func TestPublishingMakesOneJobForEachTokenHoweverOftenItIsDone(t *testing.T) {
	onBoth(t, func(s *scene) {
		c := s.draft(5, campaign.Plan{})
		if c.State != campaign.Draft {
			t.Errorf("a new campaign is %s", c.State)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := s.Publish(t.Context(), owner, c.ID); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if c = s.publish(c); c.State != campaign.Processing || c.Members.Total != 5 {
			t.Errorf("%s with %+v", c.State, c.Members)
		}
		jobs, _, err := s.jobs.Jobs(t.Context(), store.Filter{Kind: campaign.Copy{}.Kind(), Limit: 200})
		if err != nil || len(jobs) != 5 {
			t.Errorf("%d jobs, %v", len(jobs), err)
		}
		if err := s.AddRecipients(t.Context(), owner, c.ID, []campaign.Recipient{{Name: "Late"}}); !errors.Is(err, campaign.ErrPublished) {
			t.Errorf("a recipient after publication: %v", err)
		}
		if _, err := s.Publish(t.Context(), "another owner", c.ID); !errors.Is(err, campaign.ErrNotFound) {
			t.Errorf("another owner: %v", err)
		}
	})
}

func TestACampaignBecomesReadyAndEachCopyNamesItsRecipient(t *testing.T) {
	s := newScene(t, filepath.Join(t.TempDir(), "jobs.db"))
	c := s.publish(s.draft(3, campaign.Plan{Visible: true, MaxDownloads: 1}))
	s.work()
	c = s.until(c, campaign.Ready)
	var ids []string
	tokens := s.tokens(c)
	for _, token := range tokens {
		ids = append(ids, token.ID)
	}
	for _, token := range tokens {
		if token.Status != campaign.TokenActive {
			t.Errorf("%s is %s", token.Name, token.Status)
		}
		d, err := s.OpenDownload(t.Context(), token.Secret)
		if err == nil {
			err = d.Begin(t.Context(), 0, d.Size)
		}
		if err != nil {
			t.Fatal(err)
		}
		sum, err := media.Tools{}.ReadMarks(t.Context(), d.File.Name())
		if err != nil {
			t.Fatal(err)
		}
		report, err := sum.Search(t.Context(), detect.Campaign{Key: s.Key(c.ID), Width: 640, Height: 360, Tokens: ids})
		if err != nil || !report.Found() || report.Findings[0].Token != token.ID {
			t.Errorf("%s: %v, %v", token.Name, report.Findings, err)
		}
		if err := d.Close(t.Context(), d.Size); err != nil {
			t.Error(err)
		}
	}
	if got := s.tokens(c)[0]; got.Status != campaign.TokenConsumed || got.Downloads != 1 {
		t.Errorf("after its only download the token is %s with %d downloads", got.Status, got.Downloads)
	}
}

// Milestone M1 and M3: a damaged source fails at once, the campaign is FAILED or PARTIAL, and a manual retry of each token makes it READY.
func TestAFailedTokenIsRetriedByHandUntilTheCampaignIsReady(t *testing.T) {
	onBoth(t, func(s *scene) {
		a := s.asset()
		source := filepath.Join(s.folder, "assets", a.ID)
		whole, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		damage := func(content []byte) {
			if err := os.WriteFile(source, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		damage(whole[:len(whole)/3])
		c := s.publish(s.draft(2, campaign.Plan{Asset: a.ID}))
		s.work()
		c = s.until(c, campaign.Failed)
		for _, token := range s.tokens(c) {
			if token.Status != campaign.TokenFailed || token.Code != code.InputDamaged || token.Retries != 0 || token.Error == "" {
				t.Errorf("%+v", token)
			}
			if _, err := s.OpenDownload(t.Context(), token.Secret); !errors.Is(err, campaign.ErrNotReady) {
				t.Errorf("a download of a failed copy: %v", err)
			}
		}
		damage(whole)
		first, second := s.tokens(c)[0], s.tokens(c)[1]
		if _, err := s.Retry(t.Context(), "another owner", c.ID, first.ID, "someone"); !errors.Is(err, campaign.ErrNotFound) {
			t.Errorf("another owner: %v", err)
		}
		if got, err := s.Retry(t.Context(), owner, c.ID, first.ID, "Ada"); err != nil || got.Name != first.Name {
			t.Fatal(got, err)
		}
		c = s.until(c, campaign.Partial)
		if _, err := s.Retry(t.Context(), owner, c.ID, first.ID, "Ada"); !errors.Is(err, campaign.ErrNotFailed) {
			t.Errorf("a retry of a copy that is ready: %v", err)
		}
		if _, err := s.Retry(t.Context(), owner, c.ID, second.ID, "Ada"); err != nil {
			t.Fatal(err)
		}
		s.until(c, campaign.Ready)
	})
}

func TestDownloadsAreCountedEndWithTheCampaignAndPartsAreBounded(t *testing.T) {
	s := newScene(t, filepath.Join(t.TempDir(), "jobs.db"))
	c := s.publish(s.draft(1, campaign.Plan{MaxDownloads: 2, ExpiresAt: s.at.Add(time.Hour)}))
	secret := s.tokens(c)[0].Secret
	if _, err := s.OpenDownload(t.Context(), secret); !errors.Is(err, campaign.ErrNotReady) {
		t.Errorf("before the copy is complete: %v", err)
	}
	s.work()
	c = s.until(c, campaign.Ready)
	info, err := os.Stat(filepath.Join(s.folder, "copies", s.tokens(c)[0].ID+".mp4"))
	if err != nil {
		t.Fatal(err)
	}
	size := info.Size()
	download := func(offset, length, sent int64) error {
		d, err := s.OpenDownload(t.Context(), secret)
		if err != nil {
			return err
		}
		return errors.Join(d.Begin(t.Context(), offset, length), d.Close(t.Context(), sent))
	}
	if err := download(0, size, size/2); err != nil { // the connection breaks
		t.Error(err)
	}
	if err := download(size/2, size-size/2, size-size/2); err != nil {
		t.Error("the rest of a download is not counted:", err)
	}
	if got := s.tokens(c)[0].Downloads; got != 1 {
		t.Errorf("%d downloads are counted", got)
	}
	if err := download(1, size/8, size/8); err != nil {
		t.Error("a part that is sent twice:", err)
	}
	if err := download(1, size-1, size-1); !errors.Is(err, campaign.ErrConsumed) {
		t.Errorf("a second copy in parts: %v", err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	counted := 0
	for range 10 {
		all.Go(func() {
			if err := download(0, size, 0); err == nil {
				mu.Lock()
				defer mu.Unlock()
				counted++
			} else if !errors.Is(err, campaign.ErrConsumed) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if counted != 1 {
		t.Errorf("%d of 10 downloads at once are counted, 1 was left", counted)
	}
	s.pass(2 * time.Hour)
	if c, err = s.Campaign(t.Context(), owner, c.ID); err != nil || c.State != campaign.Expired {
		t.Errorf("after its expiry the campaign is %s, %v", c.State, err)
	}
	if err := download(0, size, 0); !errors.Is(err, campaign.ErrExpired) {
		t.Errorf("after the expiry: %v", err)
	}
}

func TestWhatIsNotValidIsRefusedAndASweepKeepsWhatIsKnown(t *testing.T) {
	s := newScene(t, filepath.Join(t.TempDir(), "jobs.db"))
	a := s.asset()
	for name, plan := range map[string]campaign.Plan{
		"no name": {Asset: a.ID, Visible: true}, "no mark": {Asset: a.ID, Name: "x"}, "an expiry in the past": {Asset: a.ID, Name: "x", Visible: true, ExpiresAt: s.at.Add(-time.Hour)},
		"negative downloads": {Asset: a.ID, Name: "x", Visible: true, MaxDownloads: -1},
	} {
		if _, err := s.Create(t.Context(), owner, plan); !errors.Is(err, campaign.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Create(t.Context(), "another owner", campaign.Plan{Asset: a.ID, Name: "x", Visible: true}); !errors.Is(err, campaign.ErrNotFound) {
		t.Errorf("the asset of another owner: %v", err)
	}
	c := s.draft(0, campaign.Plan{Asset: a.ID})
	if _, err := s.Publish(t.Context(), owner, c.ID); !errors.Is(err, campaign.ErrInvalid) {
		t.Errorf("a campaign without recipients: %v", err)
	}
	if err := s.AddRecipients(t.Context(), owner, c.ID, []campaign.Recipient{{Name: "x"}, {Name: "y", Email: "not an address"}}); !errors.Is(err, campaign.ErrInvalid) || len(s.tokens(c)) != 0 {
		t.Errorf("recipients with a wrong address: %v", err)
	}
	stray := filepath.Join(s.folder, "copies", "stray.mp4")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stray); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file of no token is kept")
	}
	if _, err := os.Stat(filepath.Join(s.folder, "assets", a.ID)); err != nil {
		t.Error(err)
	}
}
