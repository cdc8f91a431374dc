// Package check validates what callers give: names, texts and sizes. It names every problem, so that a caller can correct all
// of them at once.
package check

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what callers give. They are checked before anything is written.
const (
	MaxArgs       = 1 << 20 // bytes of the arguments of a job, and of a result
	MaxName       = 128     // bytes of a kind, queue or dependency name
	MaxKey        = 255     // bytes of an owner, a tag, a unique key or an idempotency key
	MaxTags       = 32
	MaxAfter      = 1000     // jobs that one job waits for
	MaxThen       = 1000     // jobs that a job enqueues when it completes
	MaxThenBytes  = 8 << 20  // bytes of their arguments
	MaxReason     = 1000     // bytes of the reason of an intervention
	MaxCheckpoint = 64 << 10 // bytes of a checkpoint
	MaxDelay      = 100 * 365 * 24 * time.Hour
)

// Problems collects what is wrong with a value. A valid value allocates nothing, because drafts and settlements are checked
// by the thousand.
type Problems []string

// Add adds a problem.
func (p *Problems) Add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// Err returns nil if there is no problem, and otherwise one error for all: each problem as an error that wrap makes.
func (p Problems) Err(wrap func(message string) error) error {
	if len(p) == 0 {
		return nil
	}
	errs := make([]error, len(p))
	for i, message := range p {
		errs[i] = wrap(message)
	}
	return errors.Join(errs...)
}

// Name accepts names that are safe in a URL, a metric label, a file name and a terminal.
func (p *Problems) Name(what, name string) {
	ok := name != "" && len(name) <= MaxName
	for i := 0; i < len(name) && ok; i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == ':' || c == '/'
	}
	if !ok {
		p.Add("%s %.140q: use 1 to %d letters, digits and _ - . : /", what, name, MaxName)
	}
}

// Text accepts plain text of at most MaxKey bytes.
func (p *Problems) Text(what, text string) { p.text(what, text, MaxKey) }

// Actor checks the actor and the reason of a change. The actor is required.
func (p *Problems) Actor(actor, reason string) {
	if actor == "" {
		p.Add("no actor: name the person or program that makes the change")
	}
	p.Text("actor", actor)
	p.text("reason", reason, MaxReason)
}

func (p *Problems) text(what, text string, limit int) {
	if len(text) > limit || !PlainText(text) {
		p.Add("%s %.60q: use at most %d bytes of UTF-8 without control characters", what, text, limit)
	}
}

// PlainText reports whether text is valid UTF-8 without characters that control output instead of being shown: control characters
// (C0, C1), line and paragraph separators, and bidirectional controls. Owners, tags, keys and names must be plain text, because
// people read them in terminals and on pages.
func PlainText(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == 0x7f {
			return false
		} else if c >= utf8.RuneSelf {
			return utf8.ValidString(text) && !strings.ContainsFunc(text[i:], controlsOutput)
		}
	}
	return true
}

func controlsOutput(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
