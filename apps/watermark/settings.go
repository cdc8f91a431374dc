package main

import (
	"errors"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/notice"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// settings are all settings, read from the environment.
type settings struct {
	Data   string // DATA_DIR
	Addr   string // ADDR
	Store  string // DATABASE_URL: a file's path, or postgres://...
	Public string // PUBLIC_URL

	Tools   media.Tools
	Workers int // WORKERS
	Memory  int // FFMPEG_MEMORY_MB
	Upload  int // UPLOAD_MAX_MB

	Mail      notice.MailServer // MAIL_SERVER and others
	PrivateOK bool              // ALLOW_PRIVATE=on

	Lease      time.Duration // WORKER_LEASE_TTL_SEC
	Grace      time.Duration // STOP_GRACE_SEC
	SignUpOff  bool          // SIGN_UP=off
	Hosts      []string
	TrustProxy bool
}

// settingTable lists all settings. A test compares the table in the README with it.
var settingTable = append([]setting.Setting[settings]{
	{Name: "DATA_DIR", Meaning: "The folder for everything: store, videos, copies, the secret of the marks. Default: watermark in the user's data directory.", Set: setting.Text(func(s *settings) *string { return &s.Data })},
	{Name: "ADDR", Default: "127.0.0.1:4780", Meaning: "The address of the page.", Set: setting.Address(func(s *settings) *string { return &s.Addr })},
	{Name: "DATABASE_URL", Meaning: "The store: an SQLite file, or postgres://user@host/database. Default: jobs.db in DATA_DIR.", Secret: true, Set: setting.Text(func(s *settings) *string { return &s.Store })},
	{Name: "PUBLIC_URL", Meaning: "The address of the service in links to downloads and in mails, such as https://marks.example.com. Default: links have the host that the browser asks for, and mails have none.", Set: setting.Site(func(s *settings) *string { return &s.Public }, "https://marks.example.com")},

	{Name: "FFMPEG", Meaning: "The path of FFmpeg. Default: the one in the PATH.", Set: setting.Text(func(s *settings) *string { return &s.Tools.FFmpeg })},
	{Name: "FFPROBE", Meaning: "The path of FFprobe. Default: the one in the PATH.", Set: setting.Text(func(s *settings) *string { return &s.Tools.FFprobe })},
	{Name: "FFMPEG_THREADS", Default: "0", Meaning: "Threads of one FFmpeg; 0: as many as there are processors.", Set: setting.Number(func(s *settings) *int { return &s.Tools.Threads }, 0, 256)},
	{Name: "FFMPEG_MEMORY_MB", Default: "4096", Meaning: "Memory that one FFmpeg may allocate. Enforced on Linux.", Set: setting.Number(func(s *settings) *int { return &s.Memory }, 256, 1_000_000)},
	{Name: "FFMPEG_TIMEOUT_SEC", Default: "21600", Meaning: "How long one copy may take.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Tools.Limits.Time }, time.Second, 10*time.Second, 48*time.Hour)},
	{Name: "FFMPEG_STALL_SEC", Default: "300", Meaning: "FFmpeg is ended when it makes no progress for so long.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Tools.Limits.Stall }, time.Second, 5*time.Second, time.Hour)},
	{Name: "CRF", Default: "23", Meaning: "The quality of the copies: a lower number is better and larger.", Set: setting.Number(func(s *settings) *int { return &s.Tools.CRF }, 10, 35)},
	{Name: "WORKERS", Default: "1", Meaning: "Copies that this process makes at the same time.", Set: setting.Number(func(s *settings) *int { return &s.Workers }, 1, 64)},
	{Name: "UPLOAD_MAX_MB", Default: "20480", Meaning: "Maximum size of a video.", Set: setting.Number(func(s *settings) *int { return &s.Upload }, 1, 1_000_000)},

	{Name: "ALLOW_PRIVATE", Default: "off", Meaning: "on: webhooks may be on private networks and on this machine, and on any port.", Set: setting.Choice(func(s *settings) *bool { return &s.PrivateOK }, "off", "on")},

	{Name: "WORKER_LEASE_TTL_SEC", Default: "60", Meaning: "Lease duration. A copy whose worker stops renewing is reclaimed after this time.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Lease }, time.Second, time.Second, 24*time.Hour)},
	{Name: "STOP_GRACE_SEC", Default: "30", Meaning: "How long a process that is asked to stop waits for its running work. Copies that do not finish return to their queue.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Grace }, time.Second, time.Second, time.Hour)},
	{Name: "SIGN_UP", Default: "on", Meaning: "off: only people with an invitation can make an account.", Set: setting.Choice(func(s *settings) *bool { return &s.SignUpOff }, "on", "off")},
	{Name: "HOSTS", Meaning: "The host names of the page, separated by commas. Default: only localhost and loopback addresses while ADDR is one, otherwise any name.", Set: setting.Hosts(func(s *settings) *[]string { return &s.Hosts }, "marks.example.com")},
	{Name: "TRUST_PROXY", Default: "off", Meaning: "on: trust a proxy's X-Forwarded-For (the client's address).", Set: setting.Choice(func(s *settings) *bool { return &s.TrustProxy }, "off", "on")},
}, notice.MailSettings(func(s *settings) *notice.MailServer { return &s.Mail }, "Watermark <watermark@localhost>", "mails are not sent but kept, and shown on a page.")...)

// readSettings reads all settings. The error names every invalid setting.
func readSettings(env func(string) string) (settings, error) {
	s, err := setting.Read(settingTable, env)
	s.Tools.Memory, s.Tools.Limits.Bytes, s.Tools.Background = uint64(s.Memory)<<20, int64(s.Upload)<<20, true
	if s.Data == "" {
		data, missing := setting.DataDir("watermark")
		s.Data, err = data, errors.Join(err, missing)
	}
	if s.Store == "" {
		s.Store = filepath.Join(s.Data, "jobs.db")
	}
	return s, err
}

// network returns which addresses webhooks may have.
func (s *settings) network() safehttp.Config {
	cfg := safehttp.Config{AnyPort: s.PrivateOK}
	if s.PrivateOK {
		for _, all := range []string{"0.0.0.0/0", "::/0"} {
			cfg.Allow = append(cfg.Allow, netip.MustParsePrefix(all))
		}
	}
	return cfg
}
