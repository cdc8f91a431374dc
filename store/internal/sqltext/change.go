package sqltext

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// CheckChange refuses a change that cannot be stored, and names all problems at once. It fills in the sources of holds.
func CheckChange(c *store.Change) error {
	var p []error
	for _, r := range c.Records {
		p = append(p, checkRecord(r))
	}
	for i := range c.Place {
		p = append(p, c.Place[i].Check())
	}
	for i := range c.Lift {
		p = append(p, checkNamed(&c.Lift[i]))
	}
	for i := range c.Deposits {
		d := &c.Deposits[i]
		p = append(p, checkNamed(&d.Hold))
		if math.IsNaN(d.Tokens) || math.Abs(d.Tokens) > 1e9 {
			p = append(p, invalid("a deposit of %v tokens: give at most 1e9", d.Tokens))
		}
	}
	for _, e := range c.Events {
		p = append(p, checkEvent(e))
	}
	for _, l := range c.Listen {
		p = append(p, checkListener(l))
	}
	for _, a := range c.Artifacts {
		p = append(p, checkArtifact(a))
	}
	return errors.Join(p...)
}

func checkListener(l store.Listener) error {
	if !plain(l.Name, 2*check.MaxKey) {
		return invalid("listener %.60q: give a name without control characters", l.Name)
	}
	for _, event := range l.Events {
		if !plain(event, check.MaxName) {
			return invalid("listener %s listens for %.60q: name an event, or * for all", l.Name, event)
		}
	}
	return nil
}

func checkArtifact(a store.Artifact) error {
	switch {
	case a.Job.IsZero() || !plain(a.Name, check.MaxKey):
		return invalid("artifact %.60q of job %v: name both", a.Name, a.Job)
	case len(a.Ref) > 4000 || !utf8.ValidString(a.Ref) || strings.ContainsRune(a.Ref, 0):
		return invalid("artifact %s: give a reference of at most 4000 bytes of UTF-8", a.Name)
	case a.Size < 0 || a.ExpireIn < 0 || a.ExpireIn > check.MaxDelay:
		return invalid("artifact %s of %d bytes for %v: give a size and a duration that are not negative, and at most 100 years", a.Name, a.Size, a.ExpireIn)
	}
	return nil
}

// checkNamed checks only the fields that identify a hold.
func checkNamed(h *store.Hold) error {
	named := store.Hold{Queue: h.Queue, Kind: h.Kind, Owner: h.Owner, Dependency: h.Dependency, Tag: h.Tag, Source: h.Source, Actor: "store"}
	err := named.Check()
	h.Source = named.Source
	return err
}

func checkRecord(r store.Record) error {
	switch {
	case !plain(r.Namespace, check.MaxName) || !plain(r.Name, 2*check.MaxKey):
		return invalid("record %.60q in namespace %.60q: name both, without control characters", r.Name, r.Namespace)
	case r.Version < 0:
		return invalid("record %s/%s at version %d: give the version that was read, or 0 for a new one", r.Namespace, r.Name, r.Version)
	case r.Body != nil && (len(r.Body) > check.MaxArgs || !json.Valid(r.Body) || !utf8.Valid(r.Body)):
		return invalid("record %s/%s of %d bytes: give valid JSON of at most %d", r.Namespace, r.Name, len(r.Body), check.MaxArgs)
	}
	return nil
}

func checkEvent(e store.Event) error {
	switch {
	case e.Job.IsZero() == (e.Subject == ""):
		return invalid("an event is about a job or about another subject: name exactly one of them")
	case e.Subject != "" && !plain(e.Subject, 3*check.MaxKey):
		return invalid("the event's subject: use text without control characters")
	case !plain(e.Name, check.MaxName) || !plain(e.Actor, check.MaxKey):
		return invalid("event %.40q by %.40q: name both the event and its actor", e.Name, e.Actor)
	case len(e.Reason) > 4000 || !utf8.ValidString(e.Reason) || strings.ContainsRune(e.Reason, 0):
		return invalid("an event's reason of %d bytes: use at most 4000 of UTF-8", len(e.Reason))
	case e.Request != "" && !plain(e.Request, check.MaxKey):
		return invalid("an event's request %.40q: use at most %d bytes without control characters", e.Request, check.MaxKey)
	}
	return nil
}

// plain reports whether a text is present, short enough, and free of control characters.
func plain(text string, limit int) bool {
	return text != "" && len(text) <= limit && check.PlainText(text)
}

func invalid(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
