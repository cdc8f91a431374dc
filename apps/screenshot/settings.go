package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/notice"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// settings are all settings, read from the environment.
type settings struct {
	Data   string // DATA_DIR
	Addr   string // ADDR
	Store  string // DATABASE_URL: a file's path, or postgres://...
	Bucket string // BUCKET: a folder, or s3://bucket/prefix
	Public string // PUBLIC_URL

	Chromium  string // CHROMIUM
	Browsers  int    // BROWSERS
	NoSandbox bool   // BROWSER_SANDBOX=off
	Timeout   time.Duration
	Pixels    int
	Networks  []netip.Prefix
	PrivateOK bool // ALLOW_PRIVATE=on

	Mail notice.MailServer // MAIL_SERVER and others
	Nats string            // NATS_URL

	Policies string // RETRY_POLICIES: a YAML file
	Learned  bool   // SMART_RETRY=on
	Crashes  int    // WORKER_LOST_LIMIT

	Lease       time.Duration // WORKER_LEASE_TTL_SEC
	Grace       time.Duration // STOP_GRACE_SEC
	KeepPicture time.Duration // RETENTION_PICTURE; 0: for ever
	KeepRecord  time.Duration // RETENTION_RECORD; 0: for ever
	LinkLife    time.Duration // LINK_LIFE_SEC

	Welcome    int  // WELCOME_CREDITS
	PerMinute  int  // REQUESTS_PER_MINUTE
	SignUpOff  bool // SIGN_UP=off
	Hosts      []string
	Metrics    bool
	TrustProxy bool

	StuckAfter time.Duration // no setting: the specification says 30 minutes, which is the default
}

// settingTable lists all settings. A test compares the table in the README with it.
var settingTable = append([]setting.Setting[settings]{
	{Name: "DATA_DIR", Meaning: "The folder for everything that has no setting of its own: store, pictures, first account. Default: screenshot in the user's data directory.", Set: setting.Text(func(s *settings) *string { return &s.Data })},
	{Name: "ADDR", Default: "127.0.0.1:4770", Meaning: "The address of the page and the API.", Set: setting.Address(func(s *settings) *string { return &s.Addr })},
	{Name: "DATABASE_URL", Meaning: "The store: an SQLite file, or postgres://user@host/database. Default: jobs.db in DATA_DIR.", Secret: true, Set: setting.Text(func(s *settings) *string { return &s.Store })},
	{Name: "BUCKET", Meaning: "Where pictures are stored: a folder, or s3://bucket/prefix. Default: pictures in DATA_DIR.", Set: setting.Text(func(s *settings) *string { return &s.Bucket })},
	{Name: "PUBLIC_URL", Meaning: "The address of the service in links to pictures, such as https://shots.example.com. Default: links are relative.", Set: setting.Site(func(s *settings) *string { return &s.Public }, "https://shots.example.com")},

	{Name: "CHROMIUM", Meaning: "The path of Chromium or Chrome. Default: the one in the PATH.", Set: setting.Text(func(s *settings) *string { return &s.Chromium })},
	{Name: "BROWSERS", Default: "2", Meaning: "Browsers of a process, and so pictures at the same time. Each needs up to 1 GiB.", Set: setting.Number(func(s *settings) *int { return &s.Browsers }, 1, 64)},
	{Name: "BROWSER_SANDBOX", Default: "on", Meaning: "off: browsers run without Chromium's sandbox, which needs user namespaces. As root there is none.", Set: setting.Choice(func(s *settings) *bool { return &s.NoSandbox }, "on", "off")},
	{Name: "SHOT_TIMEOUT_SEC", Default: "60", Meaning: "The longest time limit that a request may set.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Timeout }, time.Second, time.Second, time.Hour)},
	{Name: "SHOT_MAX_PIXELS", Default: "100000000", Meaning: "Maximum number of pixels of a picture.", Set: setting.Number(func(s *settings) *int { return &s.Pixels }, 10_000, 1_000_000_000)},
	{Name: "ALLOW_PRIVATE", Default: "off", Meaning: "on: pages and webhooks may be on private networks and on this machine, and on any port. Then every user can read what this machine can reach.", Set: setting.Choice(func(s *settings) *bool { return &s.PrivateOK }, "off", "on")},
	{Name: "ALLOW_NETWORKS", Meaning: "Private networks on which pages may be, separated by commas, such as 10.1.0.0/16.", Set: setNetworks},

	{Name: "RETRY_POLICIES", Meaning: "A YAML file with retry policies by job type, limits of users and time windows. docs/retries.md describes it.", Set: setting.Text(func(s *settings) *string { return &s.Policies })},
	{Name: "SMART_RETRY", Default: "off", Meaning: "on: a retry that by experience with the same code will fail is not made.", Set: setting.Choice(func(s *settings) *bool { return &s.Learned }, "off", "on")},
	{Name: "WORKER_LEASE_TTL_SEC", Default: "30", Meaning: "Lease duration. A shot whose worker stops renewing is reclaimed after this time.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Lease }, time.Second, time.Second, 24*time.Hour)},
	{Name: "WORKER_LOST_LIMIT", Default: "3", Meaning: "How many workers a shot may lose, as by kill -9 or for lack of memory, before it is given up with SYSTEM_WORKER_LOST.", Set: setting.Number(func(s *settings) *int { return &s.Crashes }, 1, 100_000)},
	{Name: "STOP_GRACE_SEC", Default: "30", Meaning: "How long a process that is asked to stop waits for its running work. Shots that do not finish return to their queue.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Grace }, time.Second, time.Second, time.Hour)},
	{Name: "RETENTION_PICTURE", Default: "30d", Meaning: "How long pictures are kept (90m, 24h, 7d, forever).", Set: setting.Period(func(s *settings) *time.Duration { return &s.KeepPicture })},
	{Name: "RETENTION_RECORD", Default: "90d", Meaning: "How long the record of a shot is kept after its end. The ledger of credits is never deleted.", Set: setting.Period(func(s *settings) *time.Duration { return &s.KeepRecord })},
	{Name: "LINK_LIFE_SEC", Default: "900", Meaning: "How long a link to a picture is valid.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.LinkLife }, time.Second, 10*time.Second, 30*24*time.Hour)},

	{Name: "WELCOME_CREDITS", Default: "100", Meaning: "Credits of a new organisation.", Set: setting.Number(func(s *settings) *int { return &s.Welcome }, 0, 1_000_000_000)},
	{Name: "REQUESTS_PER_MINUTE", Default: "600", Meaning: "Maximum number of requests of an organisation in a minute that change something.", Set: setting.Number(func(s *settings) *int { return &s.PerMinute }, 1, 1_000_000)},
	{Name: "SIGN_UP", Default: "on", Meaning: "off: only people with an invitation can make an account.", Set: setting.Choice(func(s *settings) *bool { return &s.SignUpOff }, "on", "off")},
	{Name: "METRICS", Default: "off", Meaning: "on: /metrics is served to other machines too.", Set: setting.Choice(func(s *settings) *bool { return &s.Metrics }, "off", "on")},
	{Name: "HOSTS", Meaning: "The host names of the page, separated by commas. Default: only localhost and loopback addresses while ADDR is one, otherwise any name.", Set: setting.Hosts(func(s *settings) *[]string { return &s.Hosts }, "shots.example.com")},
	{Name: "TRUST_PROXY", Default: "off", Meaning: "on: trust a proxy's X-Forwarded-For (the client's address).", Set: setting.Choice(func(s *settings) *bool { return &s.TrustProxy }, "off", "on")},
	{Name: "NATS_URL", Meaning: "NATS servers with JetStream, separated by commas, that get the retry events of all organisations. Default: none.", Secret: true, Set: setting.Text(func(s *settings) *string { return &s.Nats })},
}, notice.MailSettings(func(s *settings) *notice.MailServer { return &s.Mail }, "Screenshots <screenshots@localhost>", "alerts can be sent to webhooks only.")...)

// readSettings reads all settings. The error names every invalid setting.
func readSettings(env func(string) string) (settings, error) {
	s, err := setting.Read(settingTable, env)
	return s, errors.Join(err, s.setDefaultPaths())
}

// setDefaultPaths puts everything below the data directory that has no place of its own.
func (s *settings) setDefaultPaths() error {
	if s.Data == "" {
		data, err := setting.DataDir("screenshot")
		if err != nil {
			return err
		}
		s.Data = data
	}
	if s.Store == "" {
		s.Store = filepath.Join(s.Data, "jobs.db")
	}
	if s.Bucket == "" {
		s.Bucket = filepath.Join(s.Data, "pictures")
	}
	return nil
}

// network returns which addresses pages and webhooks may call.
func (s *settings) network() safehttp.Config {
	cfg := safehttp.Config{Allow: s.Networks}
	if s.PrivateOK {
		cfg.AnyPort = true
		for _, all := range []string{"0.0.0.0/0", "::/0"} {
			cfg.Allow = append(cfg.Allow, netip.MustParsePrefix(all))
		}
	}
	return cfg
}

// retries reads the file with retry policies, if there is one.
func (s *settings) retries() (service.Retries, error) {
	if s.Policies == "" {
		return service.Retries{}, nil
	}
	text, err := os.ReadFile(s.Policies)
	if err != nil {
		return service.Retries{}, fmt.Errorf("RETRY_POLICIES: %w", err)
	}
	r, err := service.ReadRetries(text)
	if err != nil {
		return r, fmt.Errorf("RETRY_POLICIES=%s is not valid: %w", s.Policies, err)
	}
	return r, nil
}

func setNetworks(s *settings, text string) error {
	for part := range strings.SplitSeq(text, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return errors.New("use networks separated by commas, such as 10.1.0.0/16")
		}
		s.Networks = append(s.Networks, network)
	}
	return nil
}
