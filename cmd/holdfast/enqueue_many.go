package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
)

// together is how many drafts of a file are enqueued in one go.
const together = 100

// A pile is drafts that wait to be enqueued in one go, and what became of the others.
type pile struct {
	c      *cobra.Command
	to     holdfast.Enqueuer
	stop   bool
	drafts []holdfast.Draft
	lines  []int // where they stand

	added, existed, refused int
}

// enqueueLines enqueues a file of drafts.
func enqueueLines(ctx context.Context, c *cobra.Command, to holdfast.Enqueuer, f *enqueueForm) error {
	from := c.InOrStdin()
	if f.ndjson != "-" {
		file, err := os.Open(f.ndjson)
		if err != nil {
			return &usageError{fmt.Errorf("the drafts cannot be read: %w", err)}
		}
		defer file.Close()
		from = file
	}
	p := &pile{c: c, to: to, stop: f.stopAtErrors}
	err := p.readAll(ctx, from)
	if err == nil {
		err = p.flush(ctx)
	}
	if asJSON, _ := c.Flags().GetBool("json"); !asJSON {
		fmt.Fprintf(c.OutOrStdout(), "%d enqueued, %d existed already, %d lines could not be used\n", p.added, p.existed, p.refused)
	}
	if err == nil && p.refused > 0 {
		err = errFound
	}
	return err
}

func (p *pile) readAll(ctx context.Context, from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 1<<16), 2*holdfast.MaxArgs)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var d holdfast.Draft
		if err := api.Unmarshal(line, &d); err != nil {
			if err := errors.Join(p.flush(ctx), p.refuse(n, err)); err != nil {
				return err
			}
			continue
		}
		p.drafts, p.lines = append(p.drafts, d), append(p.lines, n)
		if len(p.drafts) < together {
			continue
		}
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return &usageError{fmt.Errorf("line %d cannot be read: %w", n+1, err)}
	}
	return nil
}

// refuse names a line that cannot be used.
func (p *pile) refuse(line int, why error) error {
	p.refused++
	if p.stop {
		return &usageError{fmt.Errorf("line %d: %w; what stands before it is enqueued", line, why)}
	}
	fmt.Fprintf(p.c.ErrOrStderr(), "line %d: %s\n", line, printable(why.Error()))
	return nil
}

// flush enqueues what has gathered. What is refused together is tried one by one: one bad draft is no fault of the others.
func (p *pile) flush(ctx context.Context) error {
	drafts, lines := p.drafts, p.lines
	p.drafts, p.lines = nil, nil
	if len(drafts) == 0 {
		return nil
	}
	receipts, err := p.to.Enqueue(ctx, drafts)
	if err == nil {
		return p.tell(lines, receipts)
	}
	if !errors.Is(err, holdfast.ErrInvalid) && !errors.Is(err, holdfast.ErrConflict) && !errors.Is(err, api.ErrReused) && !errors.Is(err, holdfast.ErrNotFound) {
		return err
	}
	for i := range drafts {
		receipts, err := p.to.Enqueue(ctx, drafts[i:i+1])
		switch {
		case err == nil:
			err = p.tell(lines[i:i+1], receipts)
		case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrThrottled):
		default:
			err = p.refuse(lines[i], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tell says what was acknowledged.
func (p *pile) tell(lines []int, receipts []holdfast.Receipt) error {
	asJSON, _ := p.c.Flags().GetBool("json")
	for i, r := range receipts {
		if r.Existing {
			p.existed++
		} else {
			p.added++
		}
		if !asJSON {
			continue
		}
		text, err := jsonLine(receipt{lines[i], r.ID, r.Existing})
		if err != nil {
			return err
		}
		fmt.Fprintln(p.c.OutOrStdout(), text)
	}
	return nil
}
