// Package campaign has the campaigns of the watermark service: assets, campaigns, their recipients with one token each, the jobs that make their copies, and downloads.
//
// Its tables are in the database of the jobs, so that one transaction publishes a campaign and enqueues all its jobs. The state of a campaign is never stored: it follows from
// the group of its jobs and from its expiry, so the two cannot disagree. The state of a token follows from its job and its downloads.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/watermark/mark"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// Errors that say what the user can do. Others are those of the database, the store and package media.
var (
	ErrNotFound  = errors.New("there is no such thing in this account")
	ErrInvalid   = errors.New("not valid") // wrapped with what is wrong
	ErrPublished = errors.New("the campaign is published and cannot be changed: create another one")
	ErrNotFailed = errors.New("Token is not in a failed state.") //nolint:staticcheck // the text of the specification, section 6.1
	ErrNotReady  = errors.New("the copy is not ready")
	ErrConsumed  = errors.New("the copy was downloaded as often as allowed")
	ErrExpired   = errors.New("the campaign has expired")
	ErrOffset    = errors.New("the part does not continue the upload: ask how much has arrived")
	ErrReceiving = errors.New("another part of this upload is being received")
	ErrTooLarge  = errors.New("the file is larger than allowed")
)

// A State is the state of a campaign.
type State string

// The states of a campaign.
const (
	Draft      State = "DRAFT"
	Processing State = "PROCESSING"
	Ready      State = "READY"
	Partial    State = "PARTIAL"
	Failed     State = "FAILED"
	Expired    State = "EXPIRED"
)

// Config is what a service needs. All fields but the last four are required.
type Config struct {
	Jobs     store.Store
	Operator *ops.Service
	DB       *database.DB
	Folder   string // for the files of assets and copies; it exists
	Upload   int64  // maximum bytes of an upload; 20 GiB when zero
	Tools    media.Tools
	Secret   []byte // of all marks, at least 32 bytes. A program that has it can make and read marks; without it no mark can be read

	Notices Notices
	Public  string // the address of the service in mails, such as https://marks.example.com; empty: mails have no links
	Log     *slog.Logger
	Now     func() time.Time
}

// A Service has all campaigns. It is safe for concurrent use.
type Service struct {
	cfg       Config
	appending locks // uploads that receive a part
}

// New makes the tables and folders and returns the service.
func New(ctx context.Context, cfg Config) (*Service, error) {
	if _, err := mark.NewKey(cfg.Secret, ""); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Upload == 0 {
		cfg.Upload = 20 << 30
	}
	for _, name := range []string{assetFolder, copyFolder, clipFolder, evidenceFolder, UploadFolder} {
		if err := os.MkdirAll(filepath.Join(cfg.Folder, name), 0o700); err != nil {
			return nil, err
		}
	}
	if err := cfg.DB.Migrate(ctx, schema); err != nil {
		return nil, err
	}
	listen := store.Listener{Name: "watermark", Events: []string{store.EventFailed, store.EventCancelled}}
	return &Service{cfg: cfg}, cfg.Jobs.Apply(ctx, store.Change{Listen: []store.Listener{listen}})
}

const (
	assetFolder = "assets"
	copyFolder  = "copies"

	// UploadFolder is where uploads arrive: they can be moved from there to the other folders.
	UploadFolder = "uploads"
)

// A Campaign gives each of its recipients a copy of an asset.
type Campaign struct {
	ID           string
	Owner        string
	Asset        string
	Name         string
	Visible      bool // mark the copies with name and date
	Invisible    bool
	MaxDownloads int       // of each token; 0: no limit
	ExpiresAt    time.Time // zero: never
	CreatedAt    time.Time
	PublishedAt  time.Time // zero: a draft

	State   State
	Members holdfast.Members // of the copies, by the state of their jobs
	group   string
}

// Plan is what a user decides about a new campaign.
type Plan struct {
	Asset        string
	Name         string
	Visible      bool
	Invisible    bool
	MaxDownloads int
	ExpiresAt    time.Time
}

const (
	maxName      = 200
	maxDownloads = 1_000_000
)

// Create creates a draft of a campaign. The error wraps ErrInvalid, or is ErrNotFound if there is no such asset.
func (s *Service) Create(ctx context.Context, owner string, p Plan) (Campaign, error) {
	name, err := cleanName("the name of the campaign", p.Name)
	switch {
	case err != nil:
		return Campaign{}, err
	case !p.Visible && !p.Invisible:
		return Campaign{}, fmt.Errorf("%w: choose the visible mark, the invisible one, or both", ErrInvalid)
	case p.MaxDownloads < 0 || p.MaxDownloads > maxDownloads:
		return Campaign{}, fmt.Errorf("%w: the number of downloads must be from 0, for no limit, to %d", ErrInvalid, maxDownloads)
	case !p.ExpiresAt.IsZero() && !p.ExpiresAt.After(s.cfg.Now()):
		return Campaign{}, fmt.Errorf("%w: the expiry is in the past", ErrInvalid)
	}
	if _, err := s.Asset(ctx, owner, p.Asset); err != nil {
		return Campaign{}, err
	}
	c := Campaign{ID: holdfast.NewID().String()}
	err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		return tx.Exec(ctx, `INSERT INTO watermark_campaign (id, owner, asset, name, visible, invisible, max_downloads, expires_at, created_at, published_at, job_group) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '')`,
			c.ID, owner, p.Asset, name, flag(p.Visible), flag(p.Invisible), p.MaxDownloads, database.Micros(p.ExpiresAt), database.Micros(s.cfg.Now()))
	})
	if err != nil {
		return Campaign{}, err
	}
	return s.Campaign(ctx, owner, c.ID)
}

func flag(v bool) int {
	if v {
		return 1
	}
	return 0
}

// cleanName returns a name of one line.
func cleanName(what, text string) (string, error) {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case text == "":
		return "", fmt.Errorf("%w: %s is missing", ErrInvalid, what)
	case utf8.RuneCountInString(text) > maxName:
		return "", fmt.Errorf("%w: %s has more than %d characters", ErrInvalid, what, maxName)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return "", fmt.Errorf("%w: %s has characters that cannot be shown", ErrInvalid, what)
	}
	return text, nil
}

const campaignColumns = `id, owner, asset, name, visible, invisible, max_downloads, expires_at, created_at, published_at, job_group`

func scanCampaign(scan func(...any) error) (c Campaign, err error) {
	var visible, invisible, expires, created, published int64
	err = scan(&c.ID, &c.Owner, &c.Asset, &c.Name, &visible, &invisible, &c.MaxDownloads, &expires, &created, &published, &c.group)
	c.Visible, c.Invisible = visible == 1, invisible == 1
	c.ExpiresAt, c.CreatedAt, c.PublishedAt = database.Time(expires), database.Time(created), database.Time(published)
	return c, err
}

// Campaign returns a campaign of an owner. The error is ErrNotFound if there is none.
func (s *Service) Campaign(ctx context.Context, owner, id string) (Campaign, error) {
	c, err := s.campaign(ctx, id)
	if err == nil && c.Owner != owner {
		return Campaign{}, ErrNotFound
	}
	return c, err
}

func (s *Service) campaign(ctx context.Context, id string) (c Campaign, err error) {
	err = ErrNotFound
	each := s.cfg.DB.Each(ctx, `SELECT `+campaignColumns+` FROM watermark_campaign WHERE id = ?`, []any{id}, func(scan func(...any) error) error {
		c, err = scanCampaign(scan)
		return err
	})
	if err := errors.Join(each, err); err != nil {
		return Campaign{}, err
	}
	return c, s.settle(ctx, &c)
}

// Campaigns returns the newest campaigns of an owner, at most limit.
func (s *Service) Campaigns(ctx context.Context, owner string, limit int) (list []Campaign, err error) {
	err = s.cfg.DB.Each(ctx, `SELECT `+campaignColumns+` FROM watermark_campaign WHERE owner = ? ORDER BY created_at DESC, id DESC LIMIT ?`, []any{owner, limit}, func(scan func(...any) error) error {
		c, err := scanCampaign(scan)
		list = append(list, c)
		return err
	})
	for i := range list {
		if err == nil {
			err = s.settle(ctx, &list[i])
		}
	}
	return list, err
}

// settle sets the state of a campaign.
func (s *Service) settle(ctx context.Context, c *Campaign) error {
	c.State = Draft
	if c.group != "" {
		id, err := holdfast.ParseID(c.group)
		if err != nil {
			return err
		}
		g, err := s.cfg.Jobs.Group(ctx, id)
		if err != nil {
			return err
		}
		c.Members, c.State = g.Members, stateOf(g)
	}
	if !c.ExpiresAt.IsZero() && !s.cfg.Now().Before(c.ExpiresAt) && c.State != Draft && c.State != Processing {
		c.State = Expired
	}
	return nil
}

// stateOf returns the state of a published campaign whose jobs are a group.
func stateOf(g holdfast.Group) State {
	switch g.State {
	case holdfast.GroupReady:
		return Ready
	case holdfast.GroupPartial:
		return Partial
	case holdfast.GroupFailed, holdfast.GroupCancelled, holdfast.GroupExpired:
		return Failed
	}
	return Processing
}

// Key returns the key of a campaign's marks.
func (s *Service) Key(campaign string) mark.Key {
	key, err := mark.NewKey(s.cfg.Secret, campaign)
	if err != nil {
		panic(err) // New has checked the secret
	}
	return key
}
