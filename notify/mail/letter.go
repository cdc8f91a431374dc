package mail

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	htmltemplate "html/template"
	netmail "net/mail"
	"strconv"
	"strings"
	texttemplate "text/template"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/store"
)

// A Template is a mail template of the application. A nil part is that of the built-in template. Each part is executed with a Letter.
type Template struct {
	Subject *texttemplate.Template
	Text    *texttemplate.Template
	HTML    *htmltemplate.Template
}

// A Message is the data of a template.
type Message struct {
	Subject      string // of the built-in template
	Subscription string // name of the subscription, or its id
	Lines        []Line
	Total        int // number of events, with those that are only counted
	More         int // number of events that are only counted
	ID           string
	At           time.Time
}

// A Line describes one event.
type Line struct {
	Title  string
	Detail string // message of the failure, if there is one
	Facts  []Fact
	At     time.Time
	Tone   string // bad, warn, good or calm
	Event  store.Event
}

// A Fact is one detail of an event.
type Fact struct{ Name, Value string }

//go:embed letter.txt
var textSource string

//go:embed letter.html
var htmlSource string

var builtIn = Template{
	Subject: texttemplate.Must(texttemplate.New("subject").Parse("{{.Subject}}")),
	Text:    texttemplate.Must(texttemplate.New("text").Funcs(texttemplate.FuncMap{"clock": clock, "rule": rule}).Parse(textSource)),
	HTML:    htmltemplate.Must(htmltemplate.New("html").Funcs(htmltemplate.FuncMap{"clock": clock, "colour": colour}).Parse(htmlSource)),
}

func clock(at time.Time) string { return at.UTC().Format("2 January 2006, 15:04:05 UTC") }

// rule underlines a title in plain text.
func rule(title string) string { return strings.Repeat("=", min(len([]rune(title)), 72)) }

func colour(tone string) string {
	switch tone {
	case "bad":
		return "#b3372f"
	case "warn":
		return "#b7791f"
	case "good":
		return "#3b7a57"
	}
	return "#8a8f98"
}

// completeTemplates completes the application's templates from the built-in one and executes each with a sample, so that a mistake shows at startup and not at the
// first mail.
func completeTemplates(own map[string]Template) (map[string]Template, error) {
	all := map[string]Template{"": builtIn}
	var problems []error
	for name, t := range own {
		if t.Subject == nil {
			t.Subject = builtIn.Subject
		}
		if t.Text == nil {
			t.Text = builtIn.Text
		}
		if t.HTML == nil {
			t.HTML = builtIn.HTML
		}
		sample := letterOf(notify.Delivery{ID: "sample", Events: []store.Event{{Seq: 1, Job: holdfast.NewID(), Name: store.EventFailed, Kind: "sample"}}})
		if _, _, _, err := t.write(sample); err != nil {
			problems = append(problems, fmt.Errorf("the mail template %.80q is not valid: %w", name, err))
		}
		all[name] = t
	}
	return all, errors.Join(problems...)
}

// write executes the three parts of a template.
func (t Template) write(l Message) (subject, text, html string, err error) {
	var s, p, h bytes.Buffer
	if err := errors.Join(t.Subject.Execute(&s, l), t.Text.Execute(&p, l), t.HTML.Execute(&h, l)); err != nil {
		return "", "", "", err
	}
	return oneLine(s.String(), subjectRunes), p.String(), h.String(), nil
}

func letterOf(d notify.Delivery) Message {
	l := Message{
		Subject: subjectOf(d.Events, d.More), Subscription: oneLine(d.Subscription.Name, 80),
		Total: len(d.Events) + d.More, More: d.More, ID: oneLine(d.ID, 200), At: d.At,
	}
	if l.Subscription == "" {
		l.Subscription = d.Subscription.ID.String()
	}
	for _, e := range d.Events {
		l.Lines = append(l.Lines, Line{
			Title: Sentence(e), Detail: shorten(strings.TrimSpace(e.Message), detailRunes), Facts: factsOf(e), At: e.At, Tone: toneOf(e), Event: e,
		})
	}
	return l
}

// factsOf are the details by which a reader finds the job or group again.
func factsOf(e store.Event) (facts []Fact) {
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, Fact{name, oneLine(value, 160)})
		}
	}
	if !e.Job.IsZero() {
		add("job", e.Job.String())
	}
	add("queue", e.Queue)
	add("owner", e.Owner)
	if !e.Group.IsZero() {
		add("group", e.Group.String())
	} else if id, ok := strings.CutPrefix(e.Subject, "group/"); ok {
		add("group", id)
	}
	add("code", e.Code)
	if e.Attempt > 0 {
		add("attempt", strconv.Itoa(e.Attempt))
	}
	if e.Took > 0 {
		add("took", e.Took.Round(time.Millisecond).String())
	}
	if !e.DueAt.IsZero() {
		add("next start", clock(e.DueAt))
	}
	add("by", e.Actor)
	return facts
}

// outgoing is a mail that is ready to be sent.
type outgoing struct {
	id      string
	subject string
	from    *netmail.Address
	to      []*netmail.Address
	message *gomail.Msg
}

// compose makes the mail of a delivery. Its Message-ID is the same for every attempt.
func (s *Sink) compose(to []*netmail.Address, d notify.Delivery) (outgoing, error) {
	template, ok := s.letters[d.Subscription.Options["template"]]
	if !ok {
		return outgoing{}, fmt.Errorf("%w: it has no mail template %.80q", notify.ErrNotConfigured, d.Subscription.Options["template"])
	}
	subject, text, html, err := template.write(letterOf(d))
	if err != nil {
		return outgoing{}, fmt.Errorf("the mail template failed: %w", err)
	}
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.FromMailAddress(s.from)
	m.ToMailAddress(to...)
	m.Subject(subject)
	if at := d.At; !at.IsZero() {
		m.SetDateWithValue(at)
	}
	id := messageID(d.ID, s.from)
	m.SetMessageIDWithValue(id)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetGenHeader("X-Auto-Response-Suppress", "All")
	m.SetBodyString(gomail.TypeTextPlain, text)
	m.AddAlternativeString(gomail.TypeTextHTML, html)
	return outgoing{id: "<" + id + ">", subject: subject, from: s.from, to: to, message: m}, nil
}

// messageID depends only on the delivery's id, so that attempts by other processes have the same.
func messageID(delivery string, from *netmail.Address) string {
	sum := sha256.Sum256([]byte(delivery))
	domain := from.Address[strings.LastIndex(from.Address, "@")+1:]
	return "holdfast." + hex.EncodeToString(sum[:16]) + "@" + domain
}
