package interop

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/testprograms"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/notify/webhook"
	"github.com/holdfastdev/holdfast/store"
)

const receivers = "../../examples/webhook/"

// commandOf returns the command of a receiver, without its address.
func commandOf(t *testing.T, language string) []string {
	t.Helper()
	ensured := func(p testprograms.Program) string {
		path, err := p.Ensure()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	switch language {
	case "python":
		return []string{ensured(testprograms.Python), receivers + "python/receiver.py"}
	case "node":
		return []string{ensured(testprograms.Node), receivers + "node/receiver.mjs"}
	case "php":
		return []string{ensured(testprograms.PHP), "-S"}
	}
	program := filepath.Join(t.TempDir(), "receiver")
	build := exec.Command("go", "build", "-o", program, "./examples/webhook/go")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{program}
}

// startReceiver starts the receiver of a language, and returns its URL when it listens.
func startReceiver(t *testing.T, language, secret string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	args := append(commandOf(t, language), address)
	if language == "php" {
		args = append(args, receivers+"php/receiver.php")
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HOLDFAST_SECRET_SHOP="+secret)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		stop()
		<-ended
		if t.Failed() {
			t.Logf("the receiver wrote:\n%s", out.String())
		}
	})
	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return "http://" + address + "/"
		}
		select {
		case <-ended:
			t.Fatalf("the receiver has ended:\n%s", out.String())
		default:
		}
		if time.Since(began) > time.Minute {
			t.Fatal("the receiver does not listen after a minute")
		}
	}
}

// statusOf sends a request, and returns the status of the answer.
func statusOf(t *testing.T, url string, header http.Header, body []byte) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func TestReceiversInFourLanguagesVerifyDeliveries(t *testing.T) {
	for _, language := range []string{"go", "python", "node", "php"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			checkReceiver(t, language)
		})
	}
}

func checkReceiver(t *testing.T, language string) {
	secret, old := secretOf("the secret of the receiver"), secretOf("the old secret of the receiver")
	url := startReceiver(t, language, secret)
	sink, err := webhook.New(webhook.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	send := func(at time.Time, secrets ...string) error {
		_, err := sink.Deliver(t.Context(), notify.Delivery{
			Subscription: subscription.Subscription{ID: holdfast.NewID(), Sink: "webhook", Target: url, Secrets: []string{"a", "b"}[:len(secrets)]},
			ID:           "id_7", Attempt: 1, At: at, Events: []store.Event{failed(7)}, Secrets: secrets,
		})
		return err
	}
	if err := send(time.Now(), secret); err != nil {
		t.Errorf("a delivery is refused: %v", err)
	}
	if err := send(time.Now(), old, secret); err != nil {
		t.Errorf("a delivery with two secrets is refused: %v", err)
	}
	for what, err := range map[string]error{
		"ten minutes ago":     send(time.Now().Add(-10*time.Minute), secret),
		"in ten minutes":      send(time.Now().Add(10*time.Minute), secret),
		"with another secret": send(time.Now(), old),
		"without any secret":  send(time.Now()),
	} {
		if err == nil {
			t.Errorf("a delivery signed %s is accepted", what)
		}
	}

	header, body := deliver(t, "id_8", []string{secret}, failed(7))
	changed := func(name, value string) http.Header {
		h := header.Clone()
		h.Set(name, value)
		return h
	}
	if got := statusOf(t, url, header, body); got != http.StatusNoContent {
		t.Errorf("the request as it was sent: %d", got)
	}
	for what, got := range map[string]int{
		"a changed body":      statusOf(t, url, header, append([]byte(" "), body...)),
		"a changed id":        statusOf(t, url, changed("webhook-id", "id_9"), body),
		"a changed timestamp": statusOf(t, url, changed("webhook-timestamp", "1"), body),
		"a bad timestamp":     statusOf(t, url, changed("webhook-timestamp", "now"), body),
		"an empty signature":  statusOf(t, url, changed("webhook-signature", ""), body),
		"another version":     statusOf(t, url, changed("webhook-signature", "v2"+header.Get("webhook-signature")[2:]), body),
		"no headers":          statusOf(t, url, nil, body),
	} {
		if got != http.StatusUnauthorized {
			t.Errorf("%s: %d, want 401", what, got)
		}
	}
}
