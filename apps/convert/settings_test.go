package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func settingsFrom(env map[string]string) (settings, error) {
	return readSettings(func(name string) string { return env[name] })
}

// C6; 001 section 7: every setting has its documented default.
func TestAnEmptyEnvironmentGivesTheDefaults(t *testing.T) {
	got, err := settingsFrom(map[string]string{"DATA_DIR": "data"})
	if err != nil {
		t.Fatal(err)
	}
	want := settings{
		Addr: "127.0.0.1:4750", Store: filepath.Join("data", "jobs.db"), Uploads: filepath.Join("data", "uploads"), Results: filepath.Join("data", "results"),
		GatewayURL: "http://127.0.0.1:4751", GatewayAddr: "127.0.0.1:4751", GatewaySlots: 4,
		MaxUpload: 50 << 20, MaxUploads: 512, UploadsPerMinute: 300, Mappings: []string{"text", "layout", "fields"},
		RetryMaxAttempts: 3, RetryBaseDelay: 5 * time.Second, RetryJitterMax: 5 * time.Second,
		Lease: 90 * time.Second, GatewayTimeout: time.Minute, Concurrency: 4, Grace: 30 * time.Second,
		CircuitWindow: 20, CircuitFailThreshold: 0.5, CircuitCooldown: 30 * time.Second, ProbeEvery: 5 * time.Second,
		KeepSource: 24 * time.Hour, KeepResult: 7 * 24 * time.Hour, KeepRecord: 30 * 24 * time.Hour,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestWithoutDataDirTheUsersDataDirectoryIsUsed(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	got, err := settingsFrom(nil)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "store", got.Store, filepath.Join(os.Getenv("XDG_DATA_HOME"), "convert", "jobs.db"))
}

// 001 section 7: every setting is read from the environment.
func TestEverySettingIsRead(t *testing.T) {
	got, err := settingsFrom(map[string]string{
		"ADDR": ":80", "DATABASE_URL": "postgres://me:secret@db/x", "UPLOADS_DIR": "s3://in/a", "RESULTS_DIR": "/out", "GATEWAY_URL": "https://gw.example/x/",
		"MAX_UPLOAD_BYTES": "1048576", "MAX_UPLOADS": "9", "UPLOADS_PER_MINUTE": "7", "HOSTS": "Convert.example.com, ::1", "MAPPINGS": "text, invoice,text",
		"RETRY_MAX_ATTEMPTS": "5", "RETRY_BASE_DELAY_MS": "250", "RETRY_JITTER_MAX_MS": "0", "RETRY_SCHEDULE": "table",
		"WORKER_LEASE_TTL_SEC": "45", "GATEWAY_TIMEOUT_MS": "1500", "WORKER_CONCURRENCY": "12", "STOP_GRACE_SEC": "7",
		"CIRCUIT_WINDOW": "50", "CIRCUIT_FAIL_THRESHOLD": "60", "CIRCUIT_COOLDOWN_MS": "1000", "CIRCUIT_MODE": "fail-fast", "HEALTH_PROBE_MS": "200",
		"RETENTION_SOURCE": "90m", "RETENTION_RESULT": "2d", "RETENTION_RECORD": "forever", "METRICS": "on", "TRUST_PROXY": "on",
		"GATEWAY_ADDR": "127.0.0.1:9", "GATEWAY_READER": "go", "GATEWAY_SLOTS": "3", "MAPPINGS_DIR": "/maps",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := settings{
		Addr: ":80", Store: "postgres://me:secret@db/x", Uploads: "s3://in/a", Results: "/out", GatewayURL: "https://gw.example/x", GatewayGiven: true,
		MaxUpload: 1 << 20, MaxUploads: 9, UploadsPerMinute: 7, Hosts: []string{"convert.example.com", "::1"}, Mappings: []string{"text", "invoice"},
		RetryMaxAttempts: 5, RetryBaseDelay: 250 * time.Millisecond, RetryTable: true,
		Lease: 45 * time.Second, GatewayTimeout: 1500 * time.Millisecond, Concurrency: 12, Grace: 7 * time.Second,
		CircuitWindow: 50, CircuitFailThreshold: 0.6, CircuitCooldown: time.Second, FailFast: true, ProbeEvery: 200 * time.Millisecond,
		KeepSource: 90 * time.Minute, KeepResult: 48 * time.Hour, KeepRecord: 0, Metrics: true, TrustProxy: true,
		GatewayAddr: "127.0.0.1:9", GatewayReader: "go", GatewaySlots: 3, MappingsDir: "/maps",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	for _, text := range []string{"50%", "0.5", "50"} {
		if got, err := settingsFrom(map[string]string{"DATA_DIR": "d", "CIRCUIT_FAIL_THRESHOLD": text}); err != nil || got.CircuitFailThreshold != 0.5 {
			t.Errorf("%s is %v, %v", text, got.CircuitFailThreshold, err)
		}
	}
}

func TestAllInvalidSettingsAreNamedAtOnceWithValueAndRemedy(t *testing.T) {
	bad := map[string]string{
		"ADDR": "nowhere", "GATEWAY_URL": "ftp://me:hunter2@x", "MAX_UPLOAD_BYTES": "50MB", "MAX_UPLOADS": "0", "UPLOADS_PER_MINUTE": "0", "HOSTS": "a b", "MAPPINGS": "a,../b",
		"RETRY_MAX_ATTEMPTS": "0", "RETRY_BASE_DELAY_MS": "-1", "RETRY_JITTER_MAX_MS": "1e3", "RETRY_SCHEDULE": "linear",
		"WORKER_LEASE_TTL_SEC": "0", "GATEWAY_TIMEOUT_MS": "0", "WORKER_CONCURRENCY": "many", "STOP_GRACE_SEC": "0",
		"CIRCUIT_WINDOW": "0", "CIRCUIT_FAIL_THRESHOLD": "NaN", "CIRCUIT_COOLDOWN_MS": "9223372036854775807", "CIRCUIT_MODE": "half-open", "HEALTH_PROBE_MS": "x",
		"RETENTION_SOURCE": "0", "RETENTION_RESULT": "7", "RETENTION_RECORD": "-1d", "METRICS": "yes", "TRUST_PROXY": "1",
		"GATEWAY_ADDR": "127.0.0.1:99999", "GATEWAY_READER": "acrobat",
	}
	_, err := settingsFrom(bad)
	if err == nil {
		t.Fatal("all of it was taken")
	}
	lines := strings.Split(err.Error(), "\n")
	expect(t, "problems", len(lines), len(bad))
	for name, value := range bad {
		at := strings.Index(err.Error(), name+"=")
		if at < 0 {
			t.Errorf("%s=%s was taken", name, value)
			continue
		}
		line, _, _ := strings.Cut(err.Error()[at:], "\n")
		if !strings.Contains(line, "use ") || name != "GATEWAY_URL" && !strings.Contains(line, value) {
			t.Errorf("the error does not say what to do: %s", line)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret is shown: %v", err)
	}
}

func TestAnEmptyValueCountsAsNotSet(t *testing.T) {
	env := map[string]string{"DATA_DIR": "d"}
	plain, _ := settingsFrom(env)
	for _, k := range settingTable {
		if k.Name != "DATA_DIR" {
			env[k.Name] = " "
		}
	}
	blank, err := settingsFrom(env)
	if diff := cmp.Diff(plain, blank); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// The table in the README has each setting once, with its default and meaning.
func TestTheReadmeListsEverySetting(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range settingTable {
		if line := k.Row(); strings.Count(string(text), line) != 1 {
			t.Errorf("README.md must have this line once:\n%s", line)
		}
	}
}
