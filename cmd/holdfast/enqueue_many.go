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
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/internal/check"
)

// draftBatchSize is how many drafts of a file are enqueued in one transaction.
const draftBatchSize = 100

// A draftBatch collects the drafts of a file and enqueues them together. It also counts enqueued, existing and rejected drafts.
type draftBatch struct {
	c      *cobra.Command
	to     holdfast.Enqueuer
	stop   bool
	drafts []holdfast.Draft
	lines  []int // line numbers of the drafts

	added, existed, refused int
}

// enqueueLines enqueues the drafts of a file.
func enqueueLines(ctx context.Context, c *cobra.Command, to holdfast.Enqueuer, f *enqueueForm) error {
	from := c.InOrStdin()
	if f.ndjson != "-" {
		file, err := os.Open(f.ndjson)
		if err != nil {
			return &usageError{fmt.Errorf("cannot read the drafts: %w", err)}
		}
		defer file.Close()
		from = file
	}
	b := &draftBatch{c: c, to: to, stop: f.stopAtErrors}
	err := b.readAll(ctx, from)
	if err == nil {
		err = b.flush(ctx)
	}
	if asJSON, _ := c.Flags().GetBool("json"); !asJSON {
		fmt.Fprintf(c.OutOrStdout(), "%d enqueued, %d already existed, %d lines rejected\n", b.added, b.existed, b.refused)
	}
	if err == nil && b.refused > 0 {
		err = errFindings
	}
	return err
}

func (b *draftBatch) readAll(ctx context.Context, from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 1<<16), 2*check.MaxArgs)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var d holdfast.Draft
		if err := api.Unmarshal(line, &d); err != nil {
			if err := errors.Join(b.flush(ctx), b.refuse(n, err)); err != nil {
				return err
			}
			continue
		}
		b.drafts, b.lines = append(b.drafts, d), append(b.lines, n)
		if len(b.drafts) < draftBatchSize {
			continue
		}
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return &usageError{fmt.Errorf("cannot read line %d: %w", n+1, err)}
	}
	return nil
}

// refuse reports an invalid line. With --stop-on-error it returns an error.
func (b *draftBatch) refuse(line int, why error) error {
	b.refused++
	if b.stop {
		return &usageError{fmt.Errorf("line %d: %w; the lines before it are enqueued", line, why)}
	}
	fmt.Fprintf(b.c.ErrOrStderr(), "line %d: %s\n", line, printable(why.Error()))
	return nil
}

// flush enqueues the collected drafts. If the store refuses the batch because of a draft, flush enqueues them one by one, so that one bad draft does not
// stop the others.
func (b *draftBatch) flush(ctx context.Context) error {
	drafts, lines := b.drafts, b.lines
	b.drafts, b.lines = nil, nil
	if len(drafts) == 0 {
		return nil
	}
	receipts, err := b.to.Enqueue(ctx, drafts)
	if err == nil {
		return b.acknowledge(lines, receipts)
	}
	if !errors.Is(err, holdfast.ErrInvalid) && !errors.Is(err, holdfast.ErrConflict) && !errors.Is(err, api.ErrReused) && !errors.Is(err, holdfast.ErrNotFound) {
		return err
	}
	for i := range drafts {
		receipts, err := b.to.Enqueue(ctx, drafts[i:i+1])
		switch {
		case err == nil:
			err = b.acknowledge(lines[i:i+1], receipts)
		case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrThrottled):
		default:
			err = b.refuse(lines[i], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// acknowledge counts the receipts and, with --json, prints them.
func (b *draftBatch) acknowledge(lines []int, receipts []holdfast.Receipt) error {
	asJSON, _ := b.c.Flags().GetBool("json")
	for i, r := range receipts {
		if r.Existing {
			b.existed++
		} else {
			b.added++
		}
		if !asJSON {
			continue
		}
		text, err := jsonLine(receipt{lines[i], r.ID, r.Existing, r.Replaced})
		if err != nil {
			return err
		}
		fmt.Fprintln(b.c.OutOrStdout(), text)
	}
	return nil
}
