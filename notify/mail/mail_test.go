package mail_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"
	texttemplate "text/template"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/mail"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// parts parses a mail: its header, and each part by its type.
func parts(t *testing.T, raw []byte) (netmail.Header, map[string]string) {
	t.Helper()
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("a letter is %s, %v", kind, err)
	}
	found := make(map[string]string)
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return m.Header, found
		}
		if err != nil {
			t.Fatal(err)
		}
		var body io.Reader = p
		switch p.Header.Get("Content-Transfer-Encoding") {
		case "quoted-printable":
			body = quotedprintable.NewReader(p)
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, p)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		found[kind] = string(text)
	}
}

func subject(t *testing.T, h netmail.Header) string {
	t.Helper()
	text, err := new(mime.WordDecoder).DecodeHeader(h.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAMailArrivesAsTextAndHTMLAndTheReceiptSaysSo(t *testing.T) {
	s, cfg := serve(t, script{})
	d := delivery("Ana <ana@example.com>, ben@example.com, ana@example.com", failed(17))
	receipt, err := open(t, cfg).Deliver(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	letters := s.taken()
	if len(letters) != 1 || len(letters[0].to) != 2 || s.signed != 1 {
		t.Fatalf("letters %v, signed in %d times", letters, s.signed)
	}
	header, found := parts(t, letters[0].body)
	if got := subject(t, header); got != "Job campaign.send failed: HTTP_5XX" {
		t.Errorf("subject %q", got)
	}
	if to, err := header.AddressList("To"); err != nil || len(to) != 2 || to[0].Name != "Ana" {
		t.Errorf("to %v, %v", to, err)
	}
	if header.Get("Auto-Submitted") != "auto-generated" {
		t.Error("a letter that answers to itself")
	}
	text, html := found["text/plain"], found["text/html"]
	for _, want := range []string{"Job campaign.send failed", d.Events[0].Job.String(), "owner: acme", "status 502 <b>from</b> the gateway", `"night watch"`, d.ID} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if !strings.Contains(html, "&lt;b&gt;from&lt;/b&gt;") || strings.Contains(html, "<b>from") {
		t.Error("HTML in a message is not escaped")
	}
	for _, remote := range []string{"http://", "https://", "src=", "url(", "<script", "<link"} {
		if strings.Contains(html, remote) {
			t.Errorf("the letter has remote content: %s", remote)
		}
	}
	got := receipt.(mail.Receipt)
	if len(got.Accepted) != 2 || len(got.Refused) != 0 || got.MessageID != header.Get("Message-ID") {
		t.Errorf("receipt %+v", got)
	}
}

func TestEveryAttemptAtADeliveryHasTheSameMessageIDAndNoOtherHasIt(t *testing.T) {
	s, cfg := serve(t, script{})
	again := delivery("ana@example.com", failed(17))
	again.Attempt, again.At = 2, again.At.Add(time.Hour)
	other := delivery("ana@example.com", failed(18))
	other.ID = "subscription/one/18"
	for _, d := range []notify.Delivery{delivery("ana@example.com", failed(17)), again, other} {
		if _, err := open(t, cfg).Deliver(t.Context(), d); err != nil { // each time as if by another process
			t.Fatal(err)
		}
	}
	var ids []string
	for _, l := range s.taken() {
		header, _ := parts(t, l.body)
		ids = append(ids, header.Get("Message-ID"))
	}
	if len(ids) != 3 || ids[0] != ids[1] || ids[0] == ids[2] || !strings.HasSuffix(ids[0], "@example.com>") {
		t.Errorf("ids %q", ids)
	}
}

func TestTheSubjectSaysWhatHappenedInWords(t *testing.T) {
	group := store.Event{Subject: "group/0192", Name: "partial", Reason: "47 of 50 complete, 3 failed", Context: map[string]string{"name": "spring-campaign"}}
	breaker := store.Event{Subject: "breaker/gateway", Name: "open"}
	retried := failed(5)
	retried.Name = "manual retry"
	retried.Code, retried.Reason = "", "the gateway is back"
	for _, c := range []struct {
		events []store.Event
		more   int
		want   string
	}{
		{[]store.Event{group}, 0, "Group spring-campaign is partial: 47 of 50 complete, 3 failed"},
		{[]store.Event{breaker}, 0, "Breaker gateway opened"},
		{[]store.Event{retried}, 0, "Job campaign.send: manual retry: the gateway is back"},
		{[]store.Event{failed(1), failed(2), failed(3)}, 0, "3 jobs failed"},
		{[]store.Event{breaker, failed(1), failed(2)}, 0, "2 jobs failed, 1 breaker opened"},
		{[]store.Event{failed(1), failed(2)}, 40, "2 jobs failed and 40 more events"},
		{[]store.Event{retried, retried}, 1, "2 jobs: manual retry and 1 more event"},
		{[]store.Event{{Subject: "duty/a", Name: "paused"}, {Subject: "duty/b", Name: "paused"}}, 0, "2 duties were paused"},
	} {
		s, cfg := serve(t, script{})
		d := delivery("ana@example.com", c.events...)
		d.More = c.more
		if _, err := open(t, cfg).Deliver(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		header, found := parts(t, s.taken()[0].body)
		if got := subject(t, header); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
		if c.more > 0 && !strings.Contains(found["text/plain"], fmt.Sprintf("%d more events", c.more)) {
			t.Error("the letter does not count what it leaves out")
		}
	}
}

func TestADigestHasALineForEachEvent(t *testing.T) {
	s, cfg := serve(t, script{})
	var events []store.Event
	for i := range int64(50) {
		events = append(events, failed(i+1))
	}
	if _, err := open(t, cfg).Deliver(t.Context(), delivery("ana@example.com", events...)); err != nil {
		t.Fatal(err)
	}
	_, found := parts(t, s.taken()[0].body)
	for _, e := range events {
		if !strings.Contains(found["text/plain"], e.Job.String()) || !strings.Contains(found["text/html"], e.Job.String()) {
			t.Fatalf("job %s is missing", e.Job)
		}
	}
}

func TestNoTargetNameOrEventAddsAHeader(t *testing.T) {
	s, cfg := serve(t, script{})
	sink := open(t, cfg)
	for _, target := range []string{
		"", "nobody", "ana@example.com\r\nBcc: eve@example.com", "ana@example.com\nBcc: eve@example.com", "Ana\r\nBcc: eve@example.com <ana@example.com>",
		"=?utf-8?q?Ana=0D=0ABcc:_eve@example.com?= <ana@example.com>", "ana@example.com\x00", "ana@example.com> SIZE=1", strings.Repeat("a", 300) + "@example.com",
		strings.Repeat("ana@example.com,", 60) + "ben@example.com", "\u202eana@example.com",
	} {
		if err := sink.Check(subscription.Subscription{Target: target}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("the target %q is not refused: %v", target, err)
		}
		if _, err := sink.Deliver(t.Context(), delivery(target, failed(1))); err == nil {
			t.Errorf("a letter went to %q", target)
		}
	}
	if err := sink.Check(subscription.Subscription{Target: "ana@example.com", Name: "x\r\nBcc: eve@example.com"}); err == nil {
		t.Error("a name with a line break is not refused")
	}
	bad := cfg
	bad.From = "Holdfast <h@example.com>\r\nBcc: eve@example.com"
	if _, err := mail.New(bad); err == nil {
		t.Error("a sender with a line break is not refused")
	}
	e := failed(1)
	e.Kind, e.Reason, e.Name = "x\r\nBcc: eve@example.com", "y\r\n\r\n.\r\nMAIL FROM:<eve@example.com>", "cancelled\nX-Evil: 1"
	d := delivery("ana@example.com", e)
	d.Subscription.Name = "n\r\nBcc: eve@example.com"
	d.ID = "id\r\nX-Evil: 1"
	if _, err := sink.Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	letters := s.taken()
	header, _ := parts(t, letters[0].body)
	if len(letters) != 1 || len(letters[0].to) != 1 || header.Get("Bcc") != "" || header.Get("X-Evil") != "" {
		t.Errorf("an event added something: %v, %v", letters[0].to, header)
	}
}

func TestAnApplicationsTemplateReplacesTheBuiltInOne(t *testing.T) {
	s, cfg := serve(t, script{})
	own := texttemplate.Must(texttemplate.New("s").Parse("{{.Total}} things\r\nBcc: eve@example.com"))
	broken := texttemplate.Must(texttemplate.New("b").Parse("{{.Nonsense}}"))
	cfg.Templates = map[string]mail.Template{"short": {Subject: own}}
	sink := open(t, cfg)
	d := delivery("ana@example.com", failed(1))
	d.Subscription.Options = map[string]string{"template": "short"}
	if _, err := sink.Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	header, _ := parts(t, s.taken()[0].body)
	if got := subject(t, header); got != "1 things Bcc: eve@example.com" || header.Get("Bcc") != "" {
		t.Errorf("subject %q", got)
	}
	d.Subscription.Options["template"] = "missing"
	if err := sink.Check(d.Subscription); err == nil {
		t.Error("a template that nobody has is accepted")
	}
	cfg.Templates["short"] = mail.Template{Text: broken}
	if _, err := mail.New(cfg); err == nil {
		t.Error("a template that cannot work is accepted")
	}
}

func TestABadConfigurationIsRefusedWithEveryProblem(t *testing.T) {
	_, err := mail.New(mail.Config{Port: 99999, TLS: "maybe", Password: password})
	for _, want := range []string{"sender", "mail server", "99999", "maybe", "user name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not told of %s: %v", want, err)
		}
	}
	cfg := mail.Config{Host: "h", From: "a@example.com", Username: "u", Password: password}
	sink := open(t, cfg)
	body, _ := json.Marshal(cfg)
	for _, shown := range []string{fmt.Sprint(err), fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg), fmt.Sprintf("%v %+v %#v", sink, sink, sink), string(body)} {
		if strings.Contains(shown, password) {
			t.Errorf("the password shows: %s", shown)
		}
	}
	if traits := sink.Traits(); traits.Together != 50 || traits.Burst != 5 || traits.Every != 5*time.Minute || traits.Policy.MaxAttempts != 6 {
		t.Errorf("traits %+v", traits)
	}
	if sink.Host(subscription.Subscription{}) != "h" {
		t.Error("the dependency is not the host")
	}
}
