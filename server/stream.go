package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
)

const (
	streamLine  = 4 << 20 // maximum size of one line
	streamBytes = 1 << 20 // maximum size of lines that wait to be enqueued
	streamLines = 1000    // maximum number of lines that wait to be enqueued
	// streamBuffer is the size of the read buffer. It counts against the memory budget as long as the stream lasts.
	streamBuffer = 16 << 10
	streamPause  = time.Minute
)

// A draftLine is one line of a stream: a draft, or what is wrong with it.
type draftLine struct {
	number int
	size   int // bytes of the memory budget that it holds
	draft  holdfast.Draft
	err    error
}

// A lineBuffer passes lines from the goroutine that reads them to the one that enqueues them. Lines that arrive while a chunk is enqueued form the next chunk, so
// chunks grow with the load. Its size is bounded, so a stream of any length needs the same memory.
type lineBuffer struct {
	mu      sync.Mutex
	changed sync.Cond
	lines   []draftLine
	bytes   int
	held    *lineBudget
	ended   bool
	err     error // why reading ended, if not at the end of the stream
}

// put waits for space, and reports false when no more lines are wanted.
func (b *lineBuffer) put(l draftLine) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.ended && (len(b.lines) >= streamLines || b.bytes > streamBytes) {
		b.changed.Wait()
	}
	if b.ended {
		return false
	}
	b.lines, b.bytes = append(b.lines, l), b.bytes+l.size
	b.changed.Broadcast()
	return true
}

// take waits for lines and returns all there are; none when the stream has ended. It reuses the memory of the last chunk.
func (b *lineBuffer) take(last []draftLine) []draftLine {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.lines) == 0 && !b.ended {
		b.changed.Wait()
	}
	lines := b.lines
	clear(last) // release the drafts for the garbage collector
	b.lines, b.bytes = last[:0], 0
	b.changed.Broadcast()
	return lines
}

// drop gives back the memory of lines that will not be enqueued.
func (b *lineBuffer) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.lines {
		b.held.give(b.lines[i].size)
	}
	b.lines = nil
}

// end ends the stream; the first error is kept. Both goroutines wake up.
func (b *lineBuffer) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended, b.err = true, err
	}
	b.changed.Broadcast()
}

// stream enqueues lines as they arrive and answers each when it is durable. A bad line does not stop the others. The last line of the answer is the sum, or
// the problem that ended the stream; if both are missing, the connection broke and unanswered lines may or may not be enqueued.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, c Caller, in *api.BulkIn) error {
	control := http.NewResponseController(w)
	if err := control.EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	b := &lineBuffer{held: &lineBudget{s, replyOf(w), r.Context()}}
	b.changed.L = &b.mu
	if err := b.held.take(streamBuffer); err != nil {
		return err
	}
	defer b.held.give(streamBuffer)
	defer b.drop()
	var reading sync.WaitGroup
	reading.Go(func() { b.end(readLines(r.Body, control, in, b)) })
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	_ = control.Flush()
	defer context.AfterFunc(r.Context(), func() { // stops the wait for the next line
		b.end(context.Cause(r.Context()))
		_ = control.SetReadDeadline(time.Now())
	})()
	to := &lineEnqueuer{server: s, caller: c, quiet: in.Quiet}
	var last []draftLine
	for {
		lines := b.take(last)
		if len(lines) == 0 || r.Context().Err() != nil {
			break
		}
		err := to.enqueueAll(r.Context(), lines)
		for i := range lines {
			b.held.give(lines[i].size)
		}
		last = lines
		_ = control.SetWriteDeadline(time.Now().Add(streamPause))
		_, lost := w.Write(to.out)
		to.out = to.out[:0]
		_ = control.Flush()
		if lost != nil || err != nil { // the client is gone, or the answer already says how far the stream came
			b.end(nil)
			_ = control.SetReadDeadline(time.Now()) // stop reading a body that is not needed any more
			reading.Wait()
			panic(http.ErrAbortHandler) // and close the connection
		}
	}
	reading.Wait()
	if b.err == nil {
		_ = control.SetReadDeadline(time.Time{}) // the next request on this connection has its own deadline
	}
	if ended := (*keyEnded)(nil); errors.As(b.err, &ended) {
		to.refuse(to.sum.Lines+1, ended.error)
	} else if errors.Is(b.err, errRejected) { // it needs more memory than is free
		to.refuse(to.sum.Lines+1, b.err)
	} else if b.err != nil {
		to.refuse(to.sum.Lines+1, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the stream is incomplete, or paused for too long: all lines before this one were answered", Cause: b.err})
	} else {
		to.writeJSON(to.sum)
	}
	_, _ = w.Write(to.out)
	return nil
}

// readLines puts each line into to until the stream ends.
func readLines(body io.Reader, control *http.ResponseController, in *api.BulkIn, to *lineBuffer) error {
	from := bufio.NewReaderSize(body, streamBuffer)
	extended := time.Time{}
	for number := 1; ; number++ {
		if now := time.Now(); now.Sub(extended) > streamPause/12 {
			_ = control.SetReadDeadline(now.Add(streamPause))
			extended = now
		}
		text, err := oneLine(from, to.held)
		l := draftLine{number: number, size: cap(text), err: err}
		if errors.Is(err, errRejected) {
			return err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 || errors.Is(err, errLong) {
			if !errors.Is(err, errLong) {
				l.err = api.Unmarshal(text, &l.draft)
			}
			if l.err == nil {
				l.err = in.Finish(&l.draft)
			}
			if err != nil && !errors.Is(err, errLong) && !errors.Is(err, io.EOF) {
				to.held.give(l.size)
				return err // an incomplete line is not enqueued
			}
			if !to.put(l) {
				to.held.give(l.size)
				return nil
			}
		} else {
			to.held.give(l.size)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, errLong) {
			return err
		}
	}
}

var errLong error = &holdfast.Error{Err: api.ErrTooLarge, Message: "the line is longer than " + strconv.Itoa(streamLine) + " bytes: store the data elsewhere and enqueue a reference"}

// oneLine reads one line. A line that is too long is skipped, with errLong. The capacity of the line is taken from the budget as it grows; the caller gives it
// back.
func oneLine(from *bufio.Reader, held *lineBudget) (line []byte, err error) {
	long := false
	for {
		part, err := from.ReadSlice('\n')
		if long = long || len(line)+len(part) > streamLine; long {
			held.give(cap(line))
			line = nil
		} else if need := len(line) + len(part); need > cap(line) {
			if len(line) > 0 {
				need = max(need, min(2*cap(line), streamLine))
			}
			if err := held.take(need); err != nil {
				held.give(cap(line))
				return nil, err
			}
			grown := append(make([]byte, 0, need), line...)
			held.give(cap(line))
			line = append(grown, part...)
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLong
		}
		return line, err
	}
}

// A lineEnqueuer enqueues one chunk of lines after the other and writes the answers.
type lineEnqueuer struct {
	server *Server
	caller Caller
	quiet  bool
	drafts []holdfast.Draft
	out    []byte
	sum    api.Sum
}

// enqueueAll enqueues lines in order and answers each. An error means that nothing more can be enqueued now; the answers say how far it came.
func (l *lineEnqueuer) enqueueAll(ctx context.Context, lines []draftLine) error {
	for len(lines) > 0 {
		n := 0
		for n < len(lines) && lines[n].err == nil {
			n++
		}
		if err := l.enqueueChunk(ctx, lines[:n]); err != nil {
			return err
		}
		if n < len(lines) {
			l.refuse(lines[n].number, lines[n].err)
			n++
		}
		lines = lines[n:]
	}
	return nil
}

// enqueueChunk enqueues valid lines in one call. If the call is refused, one of the lines is the cause: each half is tried on its own, down to single lines.
func (l *lineEnqueuer) enqueueChunk(ctx context.Context, lines []draftLine) error {
	if len(lines) == 0 {
		return nil
	}
	l.drafts = l.drafts[:0]
	for i := range lines {
		l.drafts = append(l.drafts, lines[i].draft)
	}
	receipts, err := l.server.enqueueRunning(ctx, l.caller, l.drafts)
	switch p := api.ProblemOf(err); {
	case err == nil:
		for i := range receipts {
			l.acknowledge(lines[i].number, receipts[i])
		}
		return nil
	case p.Status >= http.StatusInternalServerError || ctx.Err() != nil:
		l.refuse(lines[0].number, err)
		return err
	case len(lines) == 1:
		l.refuse(lines[0].number, err)
		return nil
	}
	half := len(lines) / 2
	if err := l.enqueueChunk(ctx, lines[:half]); err != nil {
		return err
	}
	return l.enqueueChunk(ctx, lines[half:])
}

func (l *lineEnqueuer) acknowledge(number int, r holdfast.Receipt) {
	l.sum.Lines = number
	if r.Existing {
		l.sum.Existing++
	} else {
		l.sum.Enqueued++
	}
	if l.quiet {
		return
	}
	l.out = strconv.AppendInt(append(l.out, `{"line":`...), int64(number), 10)
	l.out = append(append(l.out, `,"id":"`...), r.ID.String()...)
	l.out = append(l.out, '"')
	if r.Existing {
		l.out = append(l.out, `,"existing":true`...)
	}
	if r.Replaced {
		l.out = append(l.out, `,"replaced":true`...)
	}
	l.out = append(l.out, "}\n"...)
}

func (l *lineEnqueuer) refuse(number int, err error) {
	l.sum.Lines = number
	l.sum.Refused++
	l.writeJSON(api.Line{Line: number, Problem: api.ProblemOf(err)})
}

// writeJSON appends a line to the answer.
func (l *lineEnqueuer) writeJSON(value any) {
	if text, err := api.Marshal(value); err == nil {
		l.out = append(append(l.out, text...), '\n')
	}
}
