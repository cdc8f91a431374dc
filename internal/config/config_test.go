package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/internal/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

const reference = "../../docs/configuration.md"

func TestTheReferenceMatchesTheTable(t *testing.T) {
	if *update {
		if err := os.WriteFile(reference, []byte(config.Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != config.Reference() {
		t.Error("docs/configuration.md is not what the table says: run 'go test ./internal/config -update'")
	}
}

func read(t *testing.T, environ ...string) config.Values {
	t.Helper()
	v, err := config.Read(environ)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheNamesOfEarlierApplicationsAreAccepted(t *testing.T) {
	v := read(t, "RETRY_MAX_ATTEMPTS=7", "RETRY_BASE_DELAY_MS=1500", "RETRY_JITTER_MAX_MS=250", "WORKER_LEASE_TTL_SEC=45", "WORKER_CONCURRENCY=3",
		"CIRCUIT_WINDOW=40", "CIRCUIT_FAIL_THRESHOLD=60", "CIRCUIT_COOLDOWN_MS=12000", "GATEWAY_TIMEOUT_MS=90000", "DATABASE_URL=postgres://u@h/d")
	if v.Int("retry-max-attempts") != 7 || v.Int("workers") != 3 || v.Int("breaker-window") != 40 || v.Float("breaker-fail-threshold") != 0.6 || v.Text("store") != "postgres://u@h/d" {
		t.Error(v.Shown())
	}
	for name, want := range map[string]time.Duration{"retry-base-delay": 1500 * time.Millisecond, "retry-jitter-max": 250 * time.Millisecond, "lease": 45 * time.Second, "breaker-cooldown": 12 * time.Second, "timeout": 90 * time.Second} {
		if got := v.Duration(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func TestAFlagTakesPrecedenceOverTheEnvironmentAndOurNameOverAliases(t *testing.T) {
	v := read(t, "HOLDFAST_LEASE=20s", "WORKER_LEASE_TTL_SEC=45", "HOLDFAST_LISTEN=127.0.0.1:1", "HOLDFAST_QUEUES=")
	if err := v.Set("listen", "127.0.0.1:2"); err != nil {
		t.Fatal(err)
	}
	if v.Duration("lease") != 20*time.Second || v.Text("listen") != "127.0.0.1:2" || v.Of("listen").From != "--listen" {
		t.Error(v.Shown())
	}
	if v.IsSet("queues") || v.Text("queues") != "*" {
		t.Error("a variable that is set to nothing counts as not set:", v.List("queues"))
	}
}

func TestAnUnknownNameIsRefusedWithTheMostSimilarOne(t *testing.T) {
	for name, nearest := range map[string]string{
		"HOLDFAST_LISTN": "HOLDFAST_LISTEN", "HOLDFAST_MAIL_PASWORD_FILE": "HOLDFAST_MAIL_PASSWORD_FILE", "HOLDFAST_WORKER": "HOLDFAST_WORKERS", "HOLDFAST_LOG_LEVELS": "HOLDFAST_LOG_LEVEL",
	} {
		_, err := config.Read([]string{name + "=1"})
		if err == nil || !strings.Contains(err.Error(), "did you mean "+nearest+"?") {
			t.Errorf("%s: %v", name, err)
		}
	}
	read(t, "HOLDFAST_SECRET_SHOP=x", "HOLDFAST_SECRET_SHOP_FILE=y", "PATH=/bin")
}

func TestEveryProblemIsNamedAtOnce(t *testing.T) {
	_, err := config.Read([]string{"HOLDFAST_LEASE=long", "HOLDFAST_WORKERS=-1", "HOLDFAST_AUTH=maybe", "HOLDFAST_NO_NOTIFY=perhaps", "CIRCUIT_FAIL_THRESHOLD=0", "RETRY_BASE_DELAY_MS=5s"})
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, name := range []string{"HOLDFAST_LEASE", "HOLDFAST_WORKERS", "HOLDFAST_AUTH", "HOLDFAST_NO_NOTIFY", "CIRCUIT_FAIL_THRESHOLD", "RETRY_BASE_DELAY_MS"} {
		if strings.Count(err.Error(), name) != 1 {
			t.Errorf("%s is not in %v", name, err)
		}
	}
}

func TestSecretsComeFromFilesAndAreNeverShown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := read(t, "HOLDFAST_MAIL_PASSWORD_FILE="+file, "HOLDFAST_KEY=hf_hunter2", "DATABASE_URL=postgres://u:hunter2@h/d?sslmode=require&password=hunter2", "HOLDFAST_NATS_URL=nats://u:hunter2@h:4222")
	if v.Text("mail-password") != "hunter2" {
		t.Errorf("%q", v.Text("mail-password"))
	}
	for _, line := range v.Shown() {
		if strings.Contains(line.Value, "hunter2") {
			t.Errorf("%+v", line)
		}
		if line.Name == "store" && !strings.HasPrefix(line.Value, "postgres://u:xxxxx@h/d") {
			t.Errorf("%+v", line)
		}
	}
	for _, wrong := range [][]string{{"HOLDFAST_KEY=a", "HOLDFAST_KEY_FILE=" + file}, {"HOLDFAST_KEY_FILE=" + file + ".missing"}} {
		if _, err := config.Read(wrong); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}
