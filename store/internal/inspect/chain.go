package inspect

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// chainRule is the rule that no sealed event was changed, removed or inserted.
const chainRule = "the hash chain of stories is unbroken"

// markRule is the rule that events are deleted only by age, and that an event records how far.
const markRule = "the audit log records what was deleted from it"

// A chain is verified from where retention has cut it off to its end. Only the first event that does not fit is
// reported, because after it none can fit.
type chain struct {
	begun    bool
	link     int    // of the event before
	hash     string // the hash of that event, in hex
	head     int    // the recorded end of the chain
	headHash string
	mark     string // the last event that records a shortened log; empty: none

	broken, shortened *store.Finding
}

// chain computes every hash again and compares it with the stored one.
func (i *Inspector) chain(ctx context.Context) ([]store.Finding, error) {
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
	if c.broken == nil && (c.link != c.head || c.hash != c.headHash) {
		c.reportBroken("end", fmt.Sprintf("it ends with link %d, and its recorded end is link %d: events were removed or appended, or the recorded end was changed", c.link, c.head))
	}
	var findings []store.Finding
	for _, f := range []*store.Finding{c.broken, c.shortened} {
		if f != nil {
			findings = append(findings, *f)
		}
	}
	return findings, nil
}

// begin takes the anchor and the recorded end from the first row.
func (c *chain) begin(r Row) {
	if !c.begun {
		c.head, c.headHash, c.begun = r.Int(0), strings.ToLower(r.Text(1)), true
		c.link, c.hash, c.mark = r.Int(2), strings.ToLower(r.Text(3)), r.Text(4)
		c.checkAnchor()
	}
}

// checkAnchor finds a log that begins where no mark says that it was shortened to.
func (c *chain) checkAnchor() {
	mark, ok := rule.ReadMark(c.mark)
	switch {
	case c.link == 0 && c.mark == "":
	case c.link == 0:
		c.reportShortened("it begins with its first event, and an event in it says that it was shortened: deleted events were put back by hand")
	case c.mark == "":
		c.reportShortened(fmt.Sprintf("events up to link %d are missing, and no event records their deletion: the audit log was tampered with", c.link))
	case !ok || mark.Link != c.link || hex.EncodeToString(mark.Hash) != c.hash:
		c.reportShortened(fmt.Sprintf("events up to link %d are missing, and the last event that records a deletion names another link: the audit log was tampered with", c.link))
	}
}

// checkAge finds a mark for events that were too young to be deleted.
func (c *chain) checkAge(line store.Event) {
	if line.Subject != rule.MarkSubject || line.Name != rule.MarkName {
		return
	}
	if mark, ok := rule.ReadMark(line.Reason); ok && line.At.Sub(mark.Newest) < rule.MinStory {
		c.reportShortened(fmt.Sprintf("events up to link %d were deleted when the newest was %v old: a store deletes none before %v", mark.Link, line.At.Sub(mark.Newest).Round(time.Second), rule.MinStory))
	}
}

func (c *chain) reportShortened(detail string) {
	if c.shortened == nil {
		c.shortened = &store.Finding{Rule: markRule, Job: "chain", Detail: detail}
	}
}

// follow verifies the event of a row of the statement inspect_chain.
func (c *chain) follow(r Row) {
	link, stored := r.Int(5), strings.ToLower(r.Text(6))
	if link != c.link+1 {
		c.reportBroken(fmt.Sprintf("link %d", c.link+1), fmt.Sprintf("it is missing: link %d comes after link %d", link, c.link))
		return
	}
	before, err := hex.DecodeString(c.hash)
	if err != nil {
		c.reportBroken(fmt.Sprintf("link %d", c.link), "its hash is not valid")
		return
	}
	line := store.Event{
		Job: r.ID(8), Subject: r.Text(9), At: r.Time(10), Name: r.Text(11), Actor: r.Text(12), Reason: r.Text(13), Request: r.Text(14), Token: r.Int(15), Generation: r.Int(16), Was: json.RawMessage(r.Text(17)),
	}
	c.checkAge(line)
	if len(before) == 0 {
		before = nil
	}
	c.link, c.hash = link, hex.EncodeToString(sqltext.Link(before, line))
	if c.hash != stored {
		c.reportBroken(fmt.Sprintf("link %d", link), fmt.Sprintf("event %d (%s by %s) does not match its hash: it, its hash or the event before it was changed after it was sealed", r.Int(7), line.Name, line.Actor))
	}
}

func (c *chain) reportBroken(at, detail string) {
	c.broken = &store.Finding{Rule: chainRule, Job: "chain at " + at, Detail: detail}
}
