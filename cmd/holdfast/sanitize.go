package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast/api"
)

// A plainWriter is the terminal, or what stands in its place, for everything that verbs print. Texts of jobs and servers reach it in tables, stories and errors;
// whatever in them could move the cursor, colour the terminal or turn the order of letters round is replaced by �. Lines and tabs pass.
type plainWriter struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // the beginning of a character whose other bytes come with the next call
}

// Write writes what is harmless, and � for each character that is not.
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

// rawOf is the stream behind a plainWriter, for what the program itself draws on a terminal.
func rawOf(stream any) any {
	if w, ok := stream.(*plainWriter); ok {
		return w.to
	}
	return stream
}

// rawWriter is rawOf for writing.
func rawWriter(out io.Writer) io.Writer { return rawOf(out).(io.Writer) }

// unsafe reports whether a character acts on a terminal, or on the order in which others are shown, instead of being shown.
func unsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

func unsafeInLines(r rune) bool { return unsafe(r) && r != '\n' && r != '\t' }

// printable is a text in one line, as a terminal may be sent it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unsafe(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// jsonLine is a value as it travels. What acts on a terminal is escaped, so that the text reads as the same value and shows nothing but itself.
func jsonLine(value any) (string, error) {
	text, err := api.Marshal(value)
	return escaped(text), err
}

// escaped writes each unsafe character of a JSON text as \u. Outside strings JSON has none but the ends of lines.
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
