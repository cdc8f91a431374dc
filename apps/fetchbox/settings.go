package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/handler"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/kind/execjob"
)

// settings are all settings, read from the environment.
type settings struct {
	Data   string // DATA_DIR
	Addr   string // ADDR
	Store  string // DATABASE_URL: a file's path, or postgres://...
	Bucket string // BUCKET: a folder, or s3://bucket/prefix
	Config string // CONFIG: a YAML file with proxy pools and handlers

	Spool      string // SPOOL_DIR
	SpoolBytes int64  // SPOOL_BYTES

	Nats     string // NATS_URL: servers of our own are not started
	NatsAddr string // NATS_ADDR: where the built-in server listens; "off": nowhere

	Limits   limits
	Download downloads

	Lease       time.Duration // WORKER_LEASE_TTL_SEC
	Concurrency int           // WORKER_CONCURRENCY
	Grace       time.Duration // STOP_GRACE_SEC
	KeepRecord  time.Duration // RETENTION_RECORD; 0: for ever

	Hosts      []string // HOSTS: the names by which visitors reach the page
	Metrics    bool     // METRICS=on: /metrics is served to other machines too
	TrustProxy bool     // TRUST_PROXY=on: X-Forwarded-For and X-Forwarded-Proto are trusted
	Intakes    int      // MAX_INTAKES: manifests that are received at once
}

// limits are how often a resource is tried.
type limits struct {
	Downloads    int           // DOWNLOAD_RETRY_LIMIT
	Storage      int           // STORAGE_RETRY_LIMIT
	Base         time.Duration // RETRY_BASE_DELAY_MS
	CountNoProxy bool          // PROXY_EXHAUSTED=attempt
	Crashes      int           // WORKER_LOST_LIMIT
}

// downloads are the limits of one download.
type downloads struct {
	Time        time.Duration // DOWNLOAD_TIMEOUT_SEC
	Bytes       int64         // DOWNLOAD_MAX_BYTES
	MinSpeed    int64         // DOWNLOAD_MIN_SPEED
	Concurrency int           // HOST_CONCURRENCY
	Delay       time.Duration // HOST_DELAY_MS
	Networks    []netip.Prefix
	PrivateOK   bool // ALLOW_PRIVATE=on
}

// settingTable lists all settings. A test compares the table in the README with it.
var settingTable = []setting.Setting[settings]{
	{Name: "DATA_DIR", Meaning: "The folder for everything that has no setting of its own: store, objects, spool, ledger, stream, API key. Default: fetchbox in the user's data directory.", Set: setting.Text(func(s *settings) *string { return &s.Data })},
	{Name: "ADDR", Default: "127.0.0.1:4760", Meaning: "The address of the page and the API.", Set: setting.Address(func(s *settings) *string { return &s.Addr })},
	{Name: "DATABASE_URL", Meaning: "The store: an SQLite file, or postgres://user@host/database. Default: jobs.db in DATA_DIR.", Secret: true, Set: setting.Text(func(s *settings) *string { return &s.Store })},
	{Name: "BUCKET", Meaning: "Where resources are stored: a folder, or s3://bucket/prefix. Default: objects in DATA_DIR.", Set: setting.Text(func(s *settings) *string { return &s.Bucket })},
	{Name: "CONFIG", Meaning: "A YAML file with the proxy pools, limits of single hosts, and the programs that are handlers.", Set: setting.Text(func(s *settings) *string { return &s.Config })},
	{Name: "SPOOL_DIR", Meaning: "Where downloads are kept until they are stored. Default: spool in DATA_DIR. No other process may use it.", Set: setting.Text(func(s *settings) *string { return &s.Spool })},
	{Name: "SPOOL_BYTES", Default: "10737418240", Meaning: "Maximum size of all downloads that are kept, in bytes.", Set: setting.Bytes(func(s *settings) *int64 { return &s.SpoolBytes }, 1<<20, 1<<50)},
	{Name: "NATS_URL", Meaning: "NATS servers with JetStream for dead letters, separated by commas. Default: a server in this process.", Secret: true, Set: setting.Text(func(s *settings) *string { return &s.Nats })},
	{Name: "NATS_ADDR", Default: "127.0.0.1:4761", Meaning: "The address of the built-in NATS server, for consumers of dead letters. off: it listens nowhere.", Set: setNatsAddr},

	{Name: "DOWNLOAD_RETRY_LIMIT", Default: "5", Meaning: "Maximum number of attempts to download a resource. A manifest may set its own.", Set: setting.Number(func(s *settings) *int { return &s.Limits.Downloads }, 1, 100)},
	{Name: "STORAGE_RETRY_LIMIT", Default: "5", Meaning: "Maximum number of attempts to store a downloaded resource. A manifest may set its own.", Set: setting.Number(func(s *settings) *int { return &s.Limits.Storage }, 1, 100)},
	{Name: "RETRY_BASE_DELAY_MS", Default: "2000", Meaning: "Delay of the first retry. It doubles with each further retry, up to 10 minutes.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Limits.Base }, time.Millisecond, time.Millisecond, time.Hour)},
	{Name: "PROXY_EXHAUSTED", Default: "wait", Meaning: "What a resource spends while no proxy of its pool is usable: wait (nothing), or attempt (one attempt each time).", Set: setting.Choice(func(s *settings) *bool { return &s.Limits.CountNoProxy }, "wait", "attempt")},
	{Name: "DOWNLOAD_TIMEOUT_SEC", Default: "3600", Meaning: "Maximum time of one download.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Download.Time }, time.Second, time.Second, 24*time.Hour)},
	{Name: "DOWNLOAD_MAX_BYTES", Default: "5368709120", Meaning: "Maximum size of a resource, after decompression.", Set: setting.Bytes(func(s *settings) *int64 { return &s.Download.Bytes }, 1, 1<<50)},
	{Name: "DOWNLOAD_MIN_SPEED", Default: "1024", Meaning: "Minimum bytes per second of a download, measured over 15 seconds.", Set: setting.Bytes(func(s *settings) *int64 { return &s.Download.MinSpeed }, 1, 1<<40)},
	{Name: "HOST_CONCURRENCY", Default: "8", Meaning: "Maximum number of downloads from one host at once, in one process.", Set: setting.Number(func(s *settings) *int { return &s.Download.Concurrency }, 1, 10_000)},
	{Name: "HOST_DELAY_MS", Default: "0", Meaning: "Time from the start of one request to a host to the next.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Download.Delay }, time.Millisecond, 0, time.Hour)},
	{Name: "ALLOW_PRIVATE", Default: "off", Meaning: "on: resources may be on private networks and on this machine, and on any port. Then every client that may submit a job can read what this machine can reach.", Set: setting.Choice(func(s *settings) *bool { return &s.Download.PrivateOK }, "off", "on")},
	{Name: "ALLOW_NETWORKS", Meaning: "Private networks on which resources may be, separated by commas, such as 10.1.0.0/16.", Set: setNetworks},

	{Name: "WORKER_LEASE_TTL_SEC", Default: "30", Meaning: "Lease duration. A resource whose worker stops renewing is reclaimed after this time. Workers renew after a third of it.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Lease }, time.Second, time.Second, 24*time.Hour)},
	{Name: "WORKER_CONCURRENCY", Default: "16", Meaning: "How many resources a process works on at once.", Set: setting.Number(func(s *settings) *int { return &s.Concurrency }, 1, 1000)},
	{Name: "WORKER_LOST_LIMIT", Default: "3", Meaning: "How many workers a resource may lose, as by kill -9 or for lack of memory, before it is given up with SYSTEM_WORKER_LOST.", Set: setting.Number(func(s *settings) *int { return &s.Limits.Crashes }, 1, 100_000)},
	{Name: "STOP_GRACE_SEC", Default: "30", Meaning: "How long a process that is asked to stop waits for its running work. Resources that do not finish return to their queue.", Set: setting.Duration(func(s *settings) *time.Duration { return &s.Grace }, time.Second, time.Second, time.Hour)},
	{Name: "RETENTION_RECORD", Default: "30d", Meaning: "How long the record of a resource, its events and its dead letter are kept (90m, 24h, 7d, forever). Objects are never deleted.", Set: setting.Period(func(s *settings) *time.Duration { return &s.KeepRecord })},

	{Name: "MAX_INTAKES", Default: "8", Meaning: "Maximum number of manifests that a process receives at once.", Set: setting.Number(func(s *settings) *int { return &s.Intakes }, 1, 1000)},
	{Name: "METRICS", Default: "off", Meaning: "on: /metrics is served to other machines too.", Set: setting.Choice(func(s *settings) *bool { return &s.Metrics }, "off", "on")},
	{Name: "HOSTS", Meaning: "The host names of the page, separated by commas. Default: only localhost and loopback addresses while ADDR is one, otherwise any name.", Set: setting.Hosts(func(s *settings) *[]string { return &s.Hosts }, "fetchbox.example.com")},
	{Name: "TRUST_PROXY", Default: "off", Meaning: "on: trust a proxy's X-Forwarded-For (the client's address).", Set: setting.Choice(func(s *settings) *bool { return &s.TrustProxy }, "off", "on")},
}

// readSettings reads all settings. The error names every invalid setting.
func readSettings(env func(string) string) (settings, error) {
	s, err := setting.Read(settingTable, env)
	return s, errors.Join(err, s.setDefaultPaths())
}

// setDefaultPaths puts everything below the data directory that has no place of its own.
func (s *settings) setDefaultPaths() error {
	if s.Data == "" {
		data, err := setting.DataDir("fetchbox")
		if err != nil {
			return err
		}
		s.Data = data
	}
	for _, path := range []struct {
		of   *string
		name string
	}{{&s.Store, "jobs.db"}, {&s.Bucket, "objects"}, {&s.Spool, "spool"}} {
		if *path.of == "" {
			*path.of = filepath.Join(s.Data, path.name)
		}
	}
	return nil
}

// alone reports whether this is the only process on its store.
func (s *settings) alone() bool { return setting.IsFile(s.Store) }

// onlyLocal reports whether the page can be reached from this machine only.
func (s *settings) onlyLocal() bool {
	return web.IsLoopback(s.Addr) && len(s.Hosts) == 0 && !s.TrustProxy
}

func setNatsAddr(s *settings, text string) error {
	if text == "off" {
		s.NatsAddr = ""
		return nil
	}
	return setting.Address(func(s *settings) *string { return &s.NatsAddr })(s, text)
}

func setNetworks(s *settings, text string) error {
	for part := range strings.SplitSeq(text, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return errors.New("use networks separated by commas, such as 10.1.0.0/16")
		}
		s.Download.Networks = append(s.Download.Networks, network)
	}
	return nil
}

// A configFile is the content of CONFIG.
type configFile struct {
	Pools    map[string][]proxy.Member   `yaml:"pools"`
	Hosts    map[string]fetch.HostManner `yaml:"hosts"`
	Handlers map[string]program          `yaml:"handlers"`
}

// A program is a handler that runs a program.
type program struct {
	Path    string        `yaml:"path"`
	Args    []string      `yaml:"args"`
	Env     []string      `yaml:"env"`
	Timeout time.Duration `yaml:"timeout"`
	Memory  int64         `yaml:"memory"` // bytes
}

// readConfig reads the file with pools and handlers, if there is one.
func readConfig(file string) (c configFile, err error) {
	if file == "" {
		return c, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return c, fmt.Errorf("CONFIG: %w", err)
	}
	in := yaml.NewDecoder(bytes.NewReader(text))
	in.KnownFields(true)
	if err := in.Decode(&c); err != nil && !errors.Is(err, io.EOF) { // an empty file
		return c, fmt.Errorf("CONFIG=%s is not valid: %w", file, err)
	}
	return c, nil
}

// handlers returns the built-in handlers and those of the file.
func (c *configFile) handlers() (handler.Set, error) {
	set := handler.Standard()
	var problems []error
	for name, p := range c.Handlers {
		if _, taken := set[name]; taken {
			problems = append(problems, fmt.Errorf("CONFIG: the handler %s is built in: give yours another name", name))
			continue
		}
		made, err := handler.Exec(execjob.Program{Path: p.Path, Args: p.Args, Env: p.Env, Timeout: p.Timeout, Limits: execjob.Limits{Memory: p.Memory}})
		if err != nil {
			problems = append(problems, fmt.Errorf("CONFIG: the handler %s: %w", name, err))
		}
		set[name] = made
	}
	return set, errors.Join(problems...)
}
