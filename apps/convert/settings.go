package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/config"
)

// settings are all that can be set, by environment (C6, 001 section 7).
type settings struct {
	Addr       string // ADDR
	Store      string // DATABASE_URL: a file's path, or postgres://...
	Uploads    string // UPLOADS_DIR: a path, or s3://bucket/prefix
	Results    string // RESULTS_DIR
	GatewayURL string // GATEWAY_URL

	MaxUpload  int64    // MAX_UPLOAD_BYTES; 50 MiB
	MaxUploads int      // MAX_UPLOADS: so many at once
	Mappings   []string // MAPPINGS: what the page offers, when the gateway cannot be asked

	RetryMaxAttempts int           // RETRY_MAX_ATTEMPTS
	RetryBaseDelay   time.Duration // RETRY_BASE_DELAY_MS
	RetryJitterMax   time.Duration // RETRY_JITTER_MAX_MS
	RetryTable       bool          // RETRY_SCHEDULE=table: 5, 15, 45 s, 20 % more or less (000 section 3)

	Lease          time.Duration // WORKER_LEASE_TTL_SEC
	GatewayTimeout time.Duration // GATEWAY_TIMEOUT_MS
	Concurrency    int           // WORKER_CONCURRENCY
	Grace          time.Duration // STOP_GRACE_SEC: what work under way is given at a stop

	CircuitWindow        int           // CIRCUIT_WINDOW
	CircuitFailThreshold float64       // CIRCUIT_FAIL_THRESHOLD, a share: 0.5, or 50 for percent
	CircuitCooldown      time.Duration // CIRCUIT_COOLDOWN_MS
	FailFast             bool          // CIRCUIT_MODE=fail-fast; hold otherwise
	ProbeEvery           time.Duration // HEALTH_PROBE_MS: how often the gateway is asked whether it is well, while its breaker is open

	KeepSource, KeepResult, KeepRecord time.Duration // RETENTION_SOURCE, RETENTION_RESULT, RETENTION_RECORD; 0: for ever

	Hosts            []string // HOSTS: the names by which visitors reach the page
	UploadsPerMinute int      // UPLOADS_PER_MINUTE: of one session or key

	Metrics    bool // METRICS=on: /metrics answers others than this machine too
	TrustProxy bool // TRUST_PROXY=on: X-Forwarded-Proto is believed

	GatewayGiven  bool   // GATEWAY_URL was set: the gateway is somebody else's, and none is started here
	GatewayAddr   string // GATEWAY_ADDR: where a gateway of ours listens
	GatewayReader string // GATEWAY_READER: poppler or go; the best there is when empty
	GatewaySlots  int    // GATEWAY_SLOTS: so many PDFs it converts at once
	MappingsDir   string // MAPPINGS_DIR: mappings of the user's own, for the gateway
}

// A knob is one thing that can be set.
type knob struct {
	Name    string
	Default string // as it would be written; empty: what Meaning says
	Meaning string
	set     func(s *settings, text string) error // the error says what is allowed, and fits behind the value
	secret  bool                                 // may hold a password
}

// knobs is all there is to set. The README's table is checked against it.
var knobs = []knob{
	{Name: "DATA_DIR", Meaning: "Where everything lies that has no place of its own. When left out: convert in the user's data directory.", set: func(*settings, string) error { return nil }},
	{Name: "ADDR", Default: "127.0.0.1:4750", Meaning: "Where the page and the API are served.", set: address(func(s *settings) *string { return &s.Addr })},
	{Name: "DATABASE_URL", Meaning: "The store: a file, or postgres://user@host/database. When left out: jobs.db in DATA_DIR.", secret: true, set: func(s *settings, text string) error { s.Store = text; return nil }},
	{Name: "UPLOADS_DIR", Meaning: "Where PDFs are kept: a folder, or s3://bucket/prefix. When left out: uploads in DATA_DIR.", set: func(s *settings, text string) error { s.Uploads = text; return nil }},
	{Name: "RESULTS_DIR", Meaning: "Where XML is kept: a folder, or s3://bucket/prefix. When left out: results in DATA_DIR.", set: func(s *settings, text string) error { s.Results = text; return nil }},
	{Name: "GATEWAY_URL", Meaning: "The gateway that makes XML of PDFs. When left out: one of our own, at GATEWAY_ADDR.", secret: true, set: (*settings).setGateway},

	{Name: "MAX_UPLOAD_BYTES", Default: "52428800", Meaning: "How large a PDF may be.", set: (*settings).setMaxUpload},
	{Name: "MAX_UPLOADS", Default: "512", Meaning: "How many uploads may be under way at once in a process.", set: number(func(s *settings) *int { return &s.MaxUploads }, 1, 100_000)},
	{Name: "UPLOADS_PER_MINUTE", Default: "300", Meaning: "How many uploads one session or key may send in a minute; one address may send four times as many. A quarter of MAX_UPLOADS is for one session at once, half for one address.", set: number(func(s *settings) *int { return &s.UploadsPerMinute }, 1, 1_000_000)},
	{Name: "MAPPINGS", Default: "text,layout,fields", Meaning: "The mappings that the page offers while the gateway cannot be asked.", set: (*settings).setMappings},

	{Name: "RETRY_MAX_ATTEMPTS", Default: "3", Meaning: "After how many failed attempts a conversion has failed for good.", set: number(func(s *settings) *int { return &s.RetryMaxAttempts }, 1, 1000)},
	{Name: "RETRY_BASE_DELAY_MS", Default: "5000", Meaning: "How long the first retry waits. Each further one waits twice as long.", set: span(func(s *settings) *time.Duration { return &s.RetryBaseDelay }, time.Millisecond, time.Millisecond, time.Hour)},
	{Name: "RETRY_JITTER_MAX_MS", Default: "5000", Meaning: "Up to how much is added to each wait, by chance.", set: span(func(s *settings) *time.Duration { return &s.RetryJitterMax }, time.Millisecond, 0, time.Hour)},
	{Name: "RETRY_SCHEDULE", Default: "exponential", Meaning: "exponential, or table: 5, 15 and 45 s, each up to 20 % shorter or longer.", set: choice(func(s *settings) *bool { return &s.RetryTable }, "exponential", "table")},

	{Name: "WORKER_LEASE_TTL_SEC", Default: "90", Meaning: "How long a silent worker is believed in. A lease is renewed at every third of it.", set: span(func(s *settings) *time.Duration { return &s.Lease }, time.Second, time.Second, 24*time.Hour)},
	{Name: "GATEWAY_TIMEOUT_MS", Default: "60000", Meaning: "How long the gateway may take for one PDF, up to the last byte of its answer.", set: span(func(s *settings) *time.Duration { return &s.GatewayTimeout }, time.Millisecond, time.Millisecond, 24*time.Hour)},
	{Name: "WORKER_CONCURRENCY", Default: "4", Meaning: "How many conversions a worker does at once.", set: number(func(s *settings) *int { return &s.Concurrency }, 1, 1000)},
	{Name: "STOP_GRACE_SEC", Default: "30", Meaning: "What work under way is given to finish when a process is asked to stop. What cannot goes back to its queue.", set: span(func(s *settings) *time.Duration { return &s.Grace }, time.Second, time.Second, time.Hour)},

	{Name: "CIRCUIT_WINDOW", Default: "20", Meaning: "How many of the last calls of the gateway its breaker looks at.", set: number(func(s *settings) *int { return &s.CircuitWindow }, 1, 1000)},
	{Name: "CIRCUIT_FAIL_THRESHOLD", Default: "0.5", Meaning: "The share of them that must have failed for it to open: 0.5, or 50 for percent.", set: (*settings).setThreshold},
	{Name: "CIRCUIT_COOLDOWN_MS", Default: "30000", Meaning: "How long it stays open before jobs try the gateway, where the health probe has not closed it before.", set: span(func(s *settings) *time.Duration { return &s.CircuitCooldown }, time.Millisecond, time.Millisecond, 24*time.Hour)},
	{Name: "CIRCUIT_MODE", Default: "hold", Meaning: "What jobs do while it is open: hold (they stay queued), or fail-fast (they fail at once with GW_5XX).", set: choice(func(s *settings) *bool { return &s.FailFast }, "hold", "fail-fast")},
	{Name: "HEALTH_PROBE_MS", Default: "5000", Meaning: "How often the gateway is asked whether it is well while its breaker is open.", set: span(func(s *settings) *time.Duration { return &s.ProbeEvery }, time.Millisecond, time.Millisecond, time.Hour)},

	{Name: "RETENTION_SOURCE", Default: "24h", Meaning: "How long a PDF is kept (90m, 24h, 7d, forever). A manual retry needs it.", set: keeping(func(s *settings) *time.Duration { return &s.KeepSource })},
	{Name: "RETENTION_RESULT", Default: "7d", Meaning: "How long an XML is kept.", set: keeping(func(s *settings) *time.Duration { return &s.KeepResult })},
	{Name: "RETENTION_RECORD", Default: "30d", Meaning: "How long it is known what became of a conversion.", set: keeping(func(s *settings) *time.Duration { return &s.KeepRecord })},

	{Name: "METRICS", Default: "off", Meaning: "on: /metrics is served to others than this machine too.", set: choice(func(s *settings) *bool { return &s.Metrics }, "off", "on")},
	{Name: "HOSTS", Meaning: "The host names by which visitors reach the page, separated by commas. When left out: this machine's own names alone while ADDR is a loopback address, else any.", set: (*settings).setHosts},
	{Name: "TRUST_PROXY", Default: "off", Meaning: "on: a proxy before us says by X-Forwarded-Proto whether the visitor came by TLS, and by X-Forwarded-For from where.", set: choice(func(s *settings) *bool { return &s.TrustProxy }, "off", "on")},
	{Name: "GATEWAY_ADDR", Default: "127.0.0.1:4751", Meaning: "Where the gateway of our own listens.", set: address(func(s *settings) *string { return &s.GatewayAddr })},
	{Name: "GATEWAY_READER", Meaning: "What it reads PDFs with: poppler or go. When left out: the best there is.", set: (*settings).setReader},
	{Name: "GATEWAY_SLOTS", Default: "4", Meaning: "How many PDFs it converts at once. Others wait for a few seconds, and are answered with 503 then.", set: number(func(s *settings) *int { return &s.GatewaySlots }, 1, 1000)},
	{Name: "MAPPINGS_DIR", Meaning: "A folder with mappings of your own, for the gateway of our own.", set: func(s *settings, text string) error { s.MappingsDir = text; return nil }},
}

// readSettings reads everything, and refuses all that makes no sense at once. An empty value is as good as none.
func readSettings(env func(string) string) (settings, error) {
	var s settings
	var problems []error
	for _, k := range knobs {
		text := strings.TrimSpace(env(k.Name))
		if text == "" {
			text = k.Default
		}
		if text == "" {
			continue
		}
		if err := k.set(&s, text); err != nil {
			problems = append(problems, fmt.Errorf("%s=%s: %w", k.Name, k.shown(text), err))
		}
	}
	if s.GatewayURL == "" {
		s.GatewayURL = "http://" + s.GatewayAddr
	}
	return s, errors.Join(append(problems, s.settle(env("DATA_DIR")))...)
}

// shown is a value as an error may repeat it.
func (k *knob) shown(text string) string {
	if k.secret {
		text = config.Redacted(text)
	}
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return strconv.Quote(text)
}

// settle gives what was left out a place below the data directory.
func (s *settings) settle(data string) error {
	for _, place := range []struct {
		at   *string
		name string
	}{{&s.Store, "jobs.db"}, {&s.Uploads, "uploads"}, {&s.Results, "results"}} {
		if *place.at != "" {
			continue
		}
		if data == "" {
			var err error
			if data, err = dataDir(); err != nil {
				return err
			}
		}
		*place.at = filepath.Join(data, place.name)
	}
	return nil
}

// dataDir is the user's place for what programs keep.
func dataDir() (string, error) {
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "convert"), nil
	}
	home, err := os.UserHomeDir()
	if err == nil && runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
		return filepath.Join(home, ".local", "share", "convert"), nil
	}
	if data, err := os.UserConfigDir(); err == nil {
		return filepath.Join(data, "convert"), nil
	}
	return "", errors.New("DATA_DIR: there is no data directory for this user: say where files are to lie")
}

func (s *settings) setGateway(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("give an address such as http://127.0.0.1:4751")
	}
	s.GatewayURL, s.GatewayGiven = strings.TrimRight(text, "/"), true
	return nil
}

// hostName is what a name may be that visitors use.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$|^[0-9a-f:]{2,39}$`)

func (s *settings) setHosts(text string) error {
	for _, name := range strings.Split(text, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if !hostName.MatchString(name) {
			return errors.New("give host names without ports, separated by commas, such as convert.example.com")
		}
		s.Hosts = append(s.Hosts, name)
	}
	return nil
}

func (s *settings) setMaxUpload(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > 1<<40 {
		return errors.New("give a whole number of bytes from 1 to 1099511627776")
	}
	s.MaxUpload = n
	return nil
}

// mappingName is what a mapping may be called.
var mappingName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func (s *settings) setMappings(text string) error {
	s.Mappings = nil
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !mappingName.MatchString(name) {
			return errors.New("give names of lower-case letters, digits, - and _, with commas between")
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
		return errors.New("give a share above 0 up to 1, or a percentage up to 100")
	}
	s.CircuitFailThreshold = share
	return nil
}

func (s *settings) setReader(text string) error {
	if text != "poppler" && text != "go" {
		return errors.New("give poppler or go")
	}
	s.GatewayReader = text
	return nil
}

func address(of func(*settings) *string) func(*settings, string) error {
	return func(s *settings, text string) error {
		_, port, err := net.SplitHostPort(text)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n > 65535 {
			return errors.New("give host:port, such as 127.0.0.1:4750")
		}
		*of(s) = text
		return nil
	}
}

func number(of func(*settings) *int, least, most int) func(*settings, string) error {
	return func(s *settings, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return fmt.Errorf("give a whole number from %d to %d", least, most)
		}
		*of(s) = n
		return nil
	}
}

// span reads a whole number of some unit.
func span(of func(*settings) *time.Duration, unit, least, most time.Duration) func(*settings, string) error {
	return func(s *settings, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(least/unit) || n > int64(most/unit) {
			return fmt.Errorf("give a whole number from %d to %d (in units of %v)", least/unit, most/unit, unit)
		}
		*of(s) = time.Duration(n) * unit
		return nil
	}
}

// choice reads a switch by its two names, the ordinary one first.
func choice(of func(*settings) *bool, off, on string) func(*settings, string) error {
	return func(s *settings, text string) error {
		if text != off && text != on {
			return fmt.Errorf("give %s or %s", off, on)
		}
		*of(s) = text == on
		return nil
	}
}

// keeping reads how long something is kept: hours and days are what people think in, and Go's durations know no days.
func keeping(of func(*settings) *time.Duration) func(*settings, string) error {
	return func(s *settings, text string) error {
		if text == "forever" {
			*of(s) = 0
			return nil
		}
		d, err := time.ParseDuration(text)
		if days, isDays := strings.CutSuffix(text, "d"); isDays {
			n, bad := strconv.ParseUint(days, 10, 16)
			d, err = time.Duration(n)*24*time.Hour, bad
		}
		if err != nil || d < time.Second || d > 36500*24*time.Hour {
			return errors.New("give 90m, 24h, 7d or forever; at least 1s, at most 36500d")
		}
		*of(s) = d
		return nil
	}
}

// size is a limit as people say it.
func size(n int64) string {
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
