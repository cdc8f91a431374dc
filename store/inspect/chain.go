package inspect

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/statement"
)

// unbroken is the promise that no sealed line of a story was changed, taken out or put in between.
const unbroken = "the chain of stories is unbroken"

// A chain is followed from where retention has cut it off to its head. What does not fit is named once: after it nothing can.
type chain struct {
	begun  bool
	link   int    // of the line before
	hash   string // and its hash, in hex
	head   int    // where it is said to end
	sealed string
	broken *holdfast.Finding
}

// chain computes every hash anew.
func (i *Inspector) chain(ctx context.Context) ([]holdfast.Finding, error) {
	var c chain
	err := i.q.Query(ctx, i.statements["inspect chain"], nil, func(r Row) error {
		c.begin(r)
		if c.broken == nil {
			c.follow(r)
		}
		return nil
	})
	if err == nil && !c.begun {
		err = i.q.Query(ctx, i.statements["inspect empty chain"], nil, func(r Row) error {
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
	if c.broken == nil {
		return nil, nil
	}
	return []holdfast.Finding{*c.broken}, nil
}

// begin takes from the first row where the chain begins, and where it is to end.
func (c *chain) begin(r Row) {
	if !c.begun {
		c.head, c.sealed, c.begun = r.Int(0), strings.ToLower(r.Text(1)), true
		c.link, c.hash = r.Int(2), strings.ToLower(r.Text(3))
	}
}

// follow adds the line of a row of the statement "inspect chain".
func (c *chain) follow(r Row) {
	link, said := r.Int(4), strings.ToLower(r.Text(5))
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
		Job: r.ID(7), Subject: r.Text(8), At: r.Time(9), Name: r.Text(10), Actor: r.Text(11), Reason: r.Text(12), Request: r.Text(13), Token: r.Int(14), Generation: r.Int(15),
	}
	if len(before) == 0 {
		before = nil
	}
	c.link, c.hash = link, hex.EncodeToString(statement.Link(before, line))
	if c.hash != said {
		c.breaks(fmt.Sprintf("link %d", link), fmt.Sprintf("line %d (%s by %s) does not fit: it, or its seal, or the line before it was changed after it was sealed", r.Int(6), line.Name, line.Actor))
	}
}

func (c *chain) breaks(at, detail string) {
	c.broken = &holdfast.Finding{Rule: unbroken, Job: "chain at " + at, Detail: detail}
}
