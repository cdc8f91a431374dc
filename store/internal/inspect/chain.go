package inspect

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// unbroken is the promise that no sealed line of a story was changed, taken out or put in between.
const unbroken = "the hash chain of stories is unbroken"

// marked is the promise that lines of stories are forgotten by age alone, and that a line tells how far.
const marked = "the audit log records what was deleted from it"

// A chain is followed from where retention has cut it off to its head. What does not fit is named once: after it nothing can.
type chain struct {
	begun  bool
	link   int    // of the line before
	hash   string // and its hash, in hex
	head   int    // where it is said to end
	sealed string
	mark   string // the last line that says that the log was shortened; empty: there is none

	broken, shortened *holdfast.Finding
}

// chain computes every hash anew.
func (i *Inspector) chain(ctx context.Context) ([]holdfast.Finding, error) {
	var c chain
	err := i.q.Query(ctx, i.statements["inspect_chain"], nil, func(r Row) error {
		c.begin(r)
		if c.broken == nil {
			c.follow(r)
		}
		return nil
	})
	if err == nil && !c.begun {
		err = i.q.Query(ctx, i.statements["inspect_empty_chain"], nil, func(r Row) error {
			c.begin(r)
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	if c.broken == nil && (c.link != c.head || c.hash != c.sealed) {
		c.breaks("end", fmt.Sprintf("it ends with link %d, and its head is said to be link %d: lines were taken away or put behind it, or the head was changed", c.link, c.head))
	}
	var findings []holdfast.Finding
	for _, f := range []*holdfast.Finding{c.broken, c.shortened} {
		if f != nil {
			findings = append(findings, *f)
		}
	}
	return findings, nil
}

// begin takes from the first row where the chain begins, and where it is to end.
func (c *chain) begin(r Row) {
	if !c.begun {
		c.head, c.sealed, c.begun = r.Int(0), strings.ToLower(r.Text(1)), true
		c.link, c.hash, c.mark = r.Int(2), strings.ToLower(r.Text(3)), r.Text(4)
		c.wiped()
	}
}

// wiped finds a log that begins where no mark says that it was shortened to.
func (c *chain) wiped() {
	mark, ok := rule.ReadMark(c.mark)
	switch {
	case c.link == 0 && c.mark == "":
	case c.link == 0:
		c.shorten("it begins with its first line, and a line in it says that it was shortened: it was put back by hand")
	case c.mark == "":
		c.shorten(fmt.Sprintf("lines up to link %d are gone, and no line says that they were forgotten: the audit log was wiped", c.link))
	case !ok || mark.Link != c.link || hex.EncodeToString(mark.Hash) != c.hash:
		c.shorten(fmt.Sprintf("lines up to link %d are gone, and the last line that says what was forgotten tells another end: the audit log was wiped", c.link))
	}
}

// checkAge finds a mark that tells of lines that were too young to be forgotten.
func (c *chain) checkAge(line holdfast.Event) {
	if line.Subject != rule.MarkSubject || line.Name != rule.MarkName {
		return
	}
	if mark, ok := rule.ReadMark(line.Reason); ok && line.At.Sub(mark.Newest) < rule.MinStory {
		c.shorten(fmt.Sprintf("lines up to link %d were forgotten when the newest was %v old: no store does that before %v", mark.Link, line.At.Sub(mark.Newest).Round(time.Second), rule.MinStory))
	}
}

func (c *chain) shorten(detail string) {
	if c.shortened == nil {
		c.shortened = &holdfast.Finding{Rule: marked, Job: "chain", Detail: detail}
	}
}

// follow adds the line of a row of the statement "inspect_chain".
func (c *chain) follow(r Row) {
	link, said := r.Int(5), strings.ToLower(r.Text(6))
	if link != c.link+1 {
		c.breaks(fmt.Sprintf("link %d", c.link+1), fmt.Sprintf("it is missing: link %d comes after link %d", link, c.link))
		return
	}
	before, err := hex.DecodeString(c.hash)
	if err != nil {
		c.breaks(fmt.Sprintf("link %d", c.link), "its hash is not one")
		return
	}
	line := holdfast.Event{
		Job: r.ID(8), Subject: r.Text(9), At: r.Time(10), Name: r.Text(11), Actor: r.Text(12), Reason: r.Text(13), Request: r.Text(14), Token: r.Int(15), Generation: r.Int(16), Was: json.RawMessage(r.Text(17)),
	}
	c.checkAge(line)
	if len(before) == 0 {
		before = nil
	}
	c.link, c.hash = link, hex.EncodeToString(sqltext.Link(before, line))
	if c.hash != said {
		c.breaks(fmt.Sprintf("link %d", link), fmt.Sprintf("line %d (%s by %s) does not fit: it, or its seal, or the line before it was changed after it was sealed", r.Int(7), line.Name, line.Actor))
	}
}

func (c *chain) breaks(at, detail string) {
	c.broken = &holdfast.Finding{Rule: unbroken, Job: "chain at " + at, Detail: detail}
}
