package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast/internal/api"
)

// A plainWriter protects the terminal from the texts that commands print. Tables, stories and errors contain texts of jobs and servers. A plainWriter replaces
// every character that moves the cursor, changes colours or reverses the order of characters with �. Newlines and tabs pass. It is safe for concurrent use.
type plainWriter struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // an incomplete character at the end of the last call
}

// Write writes text with every unsafe character replaced by �.
func (w *plainWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) == 0 && !bytes.ContainsFunc(text, unsafeInLines) && utf8.Valid(text) {
		return w.to.Write(text)
	}
	all := append(w.rest, text...)
	w.rest = nil
	out := make([]byte, 0, len(all))
	for len(all) > 0 {
		if !utf8.FullRune(all) {
			w.rest = bytes.Clone(all)
			break
		}
		r, size := utf8.DecodeRune(all)
		if all = all[size:]; unsafeInLines(r) {
			r = unicode.ReplacementChar
		}
		out = utf8.AppendRune(out, r)
	}
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}

// rawOf returns the stream behind a plainWriter, for output that the program itself draws on a terminal.
func rawOf(stream any) any {
	if w, ok := stream.(*plainWriter); ok {
		return w.to
	}
	return stream
}

// rawWriter is rawOf for writers.
func rawWriter(out io.Writer) io.Writer { return rawOf(out).(io.Writer) }

// unsafe reports whether a character controls a terminal or the order in which other characters are shown.
func unsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

func unsafeInLines(r rune) bool { return unsafe(r) && r != '\n' && r != '\t' }

// printable returns a text as one line, with every unsafe character, also newline and tab, replaced by �.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unsafe(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// jsonLine encodes a value as the API does, on one line. Unsafe characters are escaped, so the text is safe to print and decodes to the same value.
func jsonLine(value any) (string, error) {
	text, err := api.Marshal(value)
	return escaped(text), err
}

// escaped writes each unsafe character of a JSON text as a \u escape. Outside of strings JSON has no unsafe characters but newlines.
func escaped(text []byte) string {
	if !bytes.ContainsFunc(text, unsafeInLines) {
		return string(text)
	}
	var out strings.Builder
	for _, r := range string(text) {
		if unsafeInLines(r) {
			fmt.Fprintf(&out, `\u%04x`, r) // all of them are in the basic plane
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}
