package main

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/setting"
)

// settings are all settings, read from the environment (C6, 001 section 7).
type settings struct {
	Addr       string // ADDR
	Store      string // DATABASE_URL: a file's path, or postgres://...
	Uploads    string // UPLOADS_DIR: a path, or s3://bucket/prefix
	Results    string // RESULTS_DIR
	GatewayURL string // GATEWAY_URL

	MaxUpload  int64    // MAX_UPLOAD_BYTES; 50 MiB
	MaxUploads int      // MAX_UPLOADS: uploads in progress at once
	Mappings   []string // MAPPINGS: what the page offers while the gateway is down

	RetryMaxAttempts int           // RETRY_MAX_ATTEMPTS
	RetryBaseDelay   time.Duration // RETRY_BASE_DELAY_MS
	RetryJitterMax   time.Duration // RETRY_JITTER_MAX_MS
	RetryTable       bool          // RETRY_SCHEDULE=table: 5, 15, 45 s, 20 % more or less (000 section 3)

	Lease          time.Duration // WORKER_LEASE_TTL_SEC
	GatewayTimeout time.Duration // GATEWAY_TIMEOUT_MS
	Concurrency    int           // WORKER_CONCURRENCY
	Grace          time.Duration // STOP_GRACE_SEC: how long work in progress may take at a stop

	CircuitWindow        int           // CIRCUIT_WINDOW
	CircuitFailThreshold float64       // CIRCUIT_FAIL_THRESHOLD, a share: 0.5, or 50 for percent
	CircuitCooldown      time.Duration // CIRCUIT_COOLDOWN_MS
	FailFast             bool          // CIRCUIT_MODE=fail-fast; hold otherwise
	ProbeEvery           time.Duration // HEALTH_PROBE_MS: interval of health checks while the breaker is open

	KeepSource, KeepResult, KeepRecord time.Duration // RETENTION_SOURCE, RETENTION_RESULT, RETENTION_RECORD; 0: for ever

	Hosts            []string // HOSTS: the names by which visitors reach the page
	UploadsPerMinute int      // UPLOADS_PER_MINUTE: of one session or key

	Metrics    bool // METRICS=on: /metrics is served to other machines too
	TrustProxy bool // TRUST_PROXY=on: X-Forwarded-Proto and X-Forwarded-For are trusted

	GatewayGiven  bool   // GATEWAY_URL was set: this process starts no gateway
	GatewayAddr   string // GATEWAY_ADDR: where the built-in gateway listens
	GatewayReader string // GATEWAY_READER: poppler or go; empty: poppler if installed, otherwise go
	GatewaySlots  int    // GATEWAY_SLOTS: PDFs that it converts at once
	MappingsDir   string // MAPPINGS_DIR: custom mappings, for the gateway
}

// settingTable lists all settings. A test compares the table in the README with it.
var settingTable = []setting.Setting[settings]{
	{Name: "DATA_DIR", Meaning: "The folder for the store and the files that have no setting of their own. Default: convert in the user's data directory.", Set: setting.Ignored[settings]},
	{Name: "ADDR", Default: "127.0.0.1:4750", Meaning: "The address of the page and the API.", Set: setting.Address(func(s *settings) *string { return &s.Addr })},
	{Name: "DATABASE_URL", Meaning: "The store: an SQLite file, or postgres://user@host/database. Default: jobs.db in DATA_DIR.", Secret: true, Set: setting.Text(func(s *settings) *string { return &s.Store })},
	{Name: "UPLOADS_DIR", Meaning: "Where PDFs are stored: a folder, or s3://bucket/prefix. Default: uploads in DATA_DIR.", Set: setting.Text(func(s *settings) *string { return &s.Uploads })},
	{Name: "RESULTS_DIR", Meaning: "Where XML files are stored: a folder, or s3://bucket/prefix. Default: results in DATA_DIR.", Set: setting.Text(func(s *settings) *string { return &s.Results })},
	{Name: "GATEWAY_URL", Meaning: "The gateway that converts PDFs to XML. Default: the built-in gateway, at GATEWAY_ADDR.", Secret: true, Set: (*settings).setGateway},

	{Name: "MAX_UPLOAD_BYTES", Default: "52428800", Meaning: "Maximum size of a PDF, in bytes.", Set: (*settings).setMaxUpload},
	{Name: "MAX_UPLOADS", Default: "512", Meaning: "Maximum number of uploads in progress in one process.", Set: setting.Number(func(s *settings) *int { return &s.MaxUploads }, 1, 100_000)},
	{Name: "UPLOADS_PER_MINUTE", Default: "300", Meaning: "Maximum number of uploads per minute of one session or key; one address may send four times as many. At any time, one session may use a quarter of MAX_UPLOADS, one address half of it.", Set: setting.Number(func(s *settings) *int { return &s.UploadsPerMinute }, 1, 1_000_000)},
	{Name: "MAPPINGS", Default: "text,layout,fields", Meaning: "The mappings that the page offers while the gateway is down.", Set: (*settings).setMappings},

	{Name: "RETRY_MAX_ATTEMPTS", Default: "3", Meaning: "Maximum number of attempts. After the last one the conversion has failed.", Set: setting.Number(func(s *settings) *int { return &s.RetryMaxAttempts }, 1, 1000)},
	{Name: "RETRY_BASE_DELAY_MS", Default: "5000", Meaning: "Delay of the first retry. It doubles with each further retry.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.RetryBaseDelay }, time.Millisecond, time.Millisecond, time.Hour)},
	{Name: "RETRY_JITTER_MAX_MS", Default: "5000", Meaning: "Maximum random addition to each delay.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.RetryJitterMax }, time.Millisecond, 0, time.Hour)},
	{Name: "RETRY_SCHEDULE", Default: "exponential", Meaning: "The delays: exponential, or table (5, 15 and 45 s, each up to 20 % shorter or longer).", Set: setting.Choice(func(s *settings) *bool { return &s.RetryTable }, "exponential", "table")},

	{Name: "WORKER_LEASE_TTL_SEC", Default: "90", Meaning: "Lease duration. A job whose worker stops renewing is reclaimed after this time. Workers renew after a third of it.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Lease }, time.Second, time.Second, 24*time.Hour)},
	{Name: "GATEWAY_TIMEOUT_MS", Default: "60000", Meaning: "Maximum time of the gateway for one PDF, up to the last byte of its answer.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.GatewayTimeout }, time.Millisecond, time.Millisecond, 24*time.Hour)},
	{Name: "WORKER_CONCURRENCY", Default: "4", Meaning: "How many conversions a worker runs at once.", Set: setting.Number(func(s *settings) *int { return &s.Concurrency }, 1, 1000)},
	{Name: "STOP_GRACE_SEC", Default: "30", Meaning: "How long a process that is asked to stop waits for its running work. Jobs that do not finish return to their queue.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Grace }, time.Second, time.Second, time.Hour)},

	{Name: "CIRCUIT_WINDOW", Default: "20", Meaning: "How many of the last calls of the gateway its breaker counts.", Set: setting.Number(func(s *settings) *int { return &s.CircuitWindow }, 1, 1000)},
	{Name: "CIRCUIT_FAIL_THRESHOLD", Default: "0.5", Meaning: "The share of failed calls at which the breaker opens: 0.5, or 50 for percent.", Set: (*settings).setThreshold},
	{Name: "CIRCUIT_COOLDOWN_MS", Default: "30000", Meaning: "How long the breaker stays open before jobs try the gateway again, unless a health check closes it earlier.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.CircuitCooldown }, time.Millisecond, time.Millisecond, 24*time.Hour)},
	{Name: "CIRCUIT_MODE", Default: "hold", Meaning: "What happens to jobs while the breaker is open: hold (they stay queued), or fail-fast (they fail at once with GW_5XX).", Set: setting.Choice(func(s *settings) *bool { return &s.FailFast }, "hold", "fail-fast")},
	{Name: "HEALTH_PROBE_MS", Default: "5000", Meaning: "Interval of the gateway's health checks while the breaker is open.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.ProbeEvery }, time.Millisecond, time.Millisecond, time.Hour)},

	{Name: "RETENTION_SOURCE", Default: "24h", Meaning: "How long a PDF is kept (90m, 24h, 7d, forever). A manual retry needs the PDF.", Set: setting.Period(func(s *settings) *time.Duration { return &s.KeepSource })},
	{Name: "RETENTION_RESULT", Default: "7d", Meaning: "How long an XML file is kept.", Set: setting.Period(func(s *settings) *time.Duration { return &s.KeepResult })},
	{Name: "RETENTION_RECORD", Default: "30d", Meaning: "How long the record of a conversion is kept.", Set: setting.Period(func(s *settings) *time.Duration { return &s.KeepRecord })},

	{Name: "METRICS", Default: "off", Meaning: "on: /metrics is served to other machines too.", Set: setting.Choice(func(s *settings) *bool { return &s.Metrics }, "off", "on")},
	{Name: "HOSTS", Meaning: "The host names of the page, separated by commas. Default: only localhost and loopback addresses while ADDR is one, otherwise any name.", Set: setting.Hosts(func(s *settings) *[]string { return &s.Hosts }, "convert.example.com")},
	{Name: "TRUST_PROXY", Default: "off", Meaning: "on: trust a proxy's X-Forwarded-Proto (whether the visitor uses TLS) and X-Forwarded-For (the visitor's address).", Set: setting.Choice(func(s *settings) *bool { return &s.TrustProxy }, "off", "on")},
	{Name: "GATEWAY_ADDR", Default: "127.0.0.1:4751", Meaning: "The address of the built-in gateway.", Set: setting.Address(func(s *settings) *string { return &s.GatewayAddr })},
	{Name: "GATEWAY_READER", Meaning: "How the built-in gateway reads PDFs: poppler or go. Default: poppler if it is installed, otherwise go.", Set: (*settings).setReader},
	{Name: "GATEWAY_SLOTS", Default: "4", Meaning: "How many PDFs the built-in gateway converts at once. Others wait a few seconds and then get 503.", Set: setting.Number(func(s *settings) *int { return &s.GatewaySlots }, 1, 1000)},
	{Name: "MAPPINGS_DIR", Meaning: "A folder with your own mappings, for the built-in gateway.", Set: setting.Text(func(s *settings) *string { return &s.MappingsDir })},
}

// readSettings reads all settings. The error names every invalid setting. An empty value counts as not set.
func readSettings(env func(string) string) (settings, error) {
	s, err := setting.Read(settingTable, env)
	if s.GatewayURL == "" {
		s.GatewayURL = "http://" + s.GatewayAddr
	}
	return s, errors.Join(err, s.setDefaultPaths(env("DATA_DIR")))
}

// setDefaultPaths puts the store and the files below the data directory unless their settings say otherwise.
func (s *settings) setDefaultPaths(data string) error {
	for _, path := range []struct {
		of   *string
		name string
	}{{&s.Store, "jobs.db"}, {&s.Uploads, "uploads"}, {&s.Results, "results"}} {
		if *path.of != "" {
			continue
		}
		if data == "" {
			var err error
			if data, err = setting.DataDir("convert"); err != nil {
				return err
			}
		}
		*path.of = filepath.Join(data, path.name)
	}
	return nil
}

func (s *settings) setGateway(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("use an address such as http://127.0.0.1:4751")
	}
	s.GatewayURL, s.GatewayGiven = strings.TrimRight(text, "/"), true
	return nil
}

func (s *settings) setMaxUpload(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > 1<<40 {
		return errors.New("use a whole number of bytes from 1 to 1099511627776")
	}
	s.MaxUpload = n
	return nil
}

// mappingName matches valid names of mappings.
var mappingName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func (s *settings) setMappings(text string) error {
	s.Mappings = nil
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !mappingName.MatchString(name) {
			return errors.New("use names of lower-case letters, digits, - and _, separated by commas")
		}
		if !slices.Contains(s.Mappings, name) {
			s.Mappings = append(s.Mappings, name)
		}
	}
	return nil
}

func (s *settings) setThreshold(text string) error {
	share, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err == nil && (share > 1 || strings.HasSuffix(text, "%")) {
		share /= 100
	}
	if err != nil || math.IsNaN(share) || share <= 0 || share > 1 {
		return errors.New("use a share above 0 and up to 1, or a percentage up to 100")
	}
	s.CircuitFailThreshold = share
	return nil
}

func (s *settings) setReader(text string) error {
	if text != "poppler" && text != "go" {
		return errors.New("use poppler or go")
	}
	s.GatewayReader = text
	return nil
}

// formatLimit formats a limit in bytes for people.
func formatLimit(n int64) string {
	for _, unit := range []struct {
		n    int64
		name string
	}{{1 << 20, "MB"}, {1 << 10, "KB"}} {
		if n > 0 && n%unit.n == 0 {
			return fmt.Sprintf("%d %s", n/unit.n, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
