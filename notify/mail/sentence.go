package mail

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

const (
	subjectRunes = 140
	detailRunes  = 600
)

// phrases say what happened to one thing, and to several of the same type. An event without a phrase is named after a colon.
var phrases = map[string]struct{ one, many string }{
	"job.queued":     {"was enqueued", "were enqueued"},
	"job.processing": {"has started", "have started"},
	"job.reclaimed":  {"was reclaimed from a lost worker", "were reclaimed from lost workers"},
	"job.retry":      {"failed and will be retried", "failed and will be retried"},
	"job.released":   {"was released to its queue", "were released to their queues"},
	"job.complete":   {"is complete", "are complete"},
	"job.failed":     {"failed", "failed"},
	"job.expired":    {"expired before it could start", "expired before they could start"},
	"job.cancelled":  {"was cancelled", "were cancelled"},

	"group.ready":     {"is ready", "are ready"},
	"group.partial":   {"is partial", "are partial"},
	"group.failed":    {"failed", "failed"},
	"group.cancelled": {"was cancelled", "were cancelled"},
	"group.expired":   {"expired", "expired"},
	"group.reopened":  {"was reopened", "were reopened"},

	"breaker.open":          {"opened", "opened"},
	"breaker.half-open":     {"is probing its dependency", "are probing their dependencies"},
	"breaker.recovering":    {"is recovering", "are recovering"},
	"breaker.closed":        {"closed", "closed"},
	"duty.paused":           {"was paused", "were paused"},
	"duty.resumed":          {"was resumed", "were resumed"},
	"schedule.paused":       {"was paused", "were paused"},
	"schedule.resumed":      {"was resumed", "were resumed"},
	"subscription.disabled": {"was disabled", "were disabled"},
}

// subjectWord is the first word of an event's type: job, group, breaker and so on.
func subjectWord(e store.Event) string {
	word, _, _ := strings.Cut(subscription.Type(e), ".")
	return word
}

// displayName is the name under which people know what an event is about.
func displayName(e store.Event) string {
	if !e.Job.IsZero() || e.Subject == "" {
		return e.Kind
	}
	if name := e.Context["name"]; name != "" {
		return name
	}
	_, rest, _ := strings.Cut(e.Subject, "/")
	return rest
}

// Sentence describes an event in one line: "Group spring-campaign is partial: 47 of 50 complete, 3 failed".
func Sentence(e store.Event) string {
	subject := capital(strings.TrimSpace(subjectWord(e) + " " + displayName(e)))
	phrase := ": " + e.Name
	if p, ok := phrases[subscription.Type(e)]; ok {
		phrase = " " + p.one
	}
	why := e.Reason
	if why == "" {
		why = e.Code
	}
	if why != "" {
		phrase += ": " + why
	}
	return oneLine(subject+phrase, subjectRunes)
}

// subjectOf is the subject line of a mail. Events beyond the three most frequent types are only counted.
func subjectOf(events []store.Event, more int) string {
	if len(events) == 1 && more == 0 {
		return Sentence(events[0])
	}
	var parts []string
	var order []string
	count := make(map[string]int)
	for _, e := range events {
		kind := subscription.Type(e)
		if count[kind]++; count[kind] == 1 {
			order = append(order, kind)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return count[b] - count[a] })
	others := more
	for i, kind := range order {
		if i >= 3 {
			others += count[kind]
			continue
		}
		parts = append(parts, counted(kind, count[kind]))
	}
	text := strings.Join(parts, ", ")
	switch {
	case others == 1:
		text += " and 1 more event"
	case others > 1:
		text += fmt.Sprintf(" and %d more events", others)
	}
	return oneLine(capital(text), subjectRunes)
}

// counted is a phrase such as "3 jobs failed" or "2 holds: lifted".
func counted(kind string, n int) string {
	word, name, _ := strings.Cut(kind, ".")
	name = strings.ReplaceAll(name, "_", " ")
	p, ok := phrases[kind]
	if !ok {
		p.one, p.many = ": "+name, ": "+name
	} else {
		p.one, p.many = " "+p.one, " "+p.many
	}
	if n == 1 {
		return fmt.Sprintf("1 %s%s", word, p.one)
	}
	return fmt.Sprintf("%d %s%s", n, plural(word), p.many)
}

func plural(word string) string {
	if rest, ok := strings.CutSuffix(word, "y"); ok {
		return rest + "ies"
	}
	return word + "s"
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// toneOf is the colour class of an event: most are neither good nor bad.
func toneOf(e store.Event) string {
	switch e.Name {
	case store.EventFailed, store.EventExpired, "open", "deadline missed", "disabled":
		return "bad"
	case store.EventRetry, store.EventReclaimed, "partial", store.EventCancelled:
		return "warn"
	case store.EventComplete, "ready", "closed":
		return "good"
	}
	return "calm"
}
