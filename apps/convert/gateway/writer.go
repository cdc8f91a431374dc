package gateway

import (
	"bufio"
	"encoding/xml"
	"strings"
)

// A writer writes indented XML 1.0. It keeps the first error until end. A character that XML does not allow becomes U+FFFD.
type writer struct {
	to    *bufio.Writer
	depth int
	err   error
}

// An attribute of an element. An attribute without a value is not written.
type attribute struct{ name, value string }

func (w *writer) raw(parts ...string) {
	for _, p := range parts {
		if w.err == nil {
			_, w.err = w.to.WriteString(p)
		}
	}
}

func (w *writer) escaped(text string) {
	if w.err == nil {
		w.err = xml.EscapeText(w.to, []byte(text))
	}
}

func (w *writer) begin() { w.raw(xml.Header) }

// end flushes the output and returns the first error.
func (w *writer) end() error {
	if w.err == nil {
		w.err = w.to.Flush()
	}
	return w.err
}

func (w *writer) tag(name string, attributes []attribute) {
	w.raw(strings.Repeat("  ", w.depth), "<", name)
	for _, a := range attributes {
		if a.value == "" {
			continue
		}
		w.raw(" ", a.name, `="`)
		w.escaped(a.value)
		w.raw(`"`)
	}
}

// open starts an element with child elements.
func (w *writer) open(name string, attributes ...attribute) {
	w.tag(name, attributes)
	w.raw(">\n")
	w.depth++
}

// close ends an element.
func (w *writer) close(name string) {
	w.depth--
	w.raw(strings.Repeat("  ", w.depth), "</", name, ">\n")
}

// leaf writes an element with text, or an empty one.
func (w *writer) leaf(name, text string, attributes ...attribute) {
	w.tag(name, attributes)
	if text == "" {
		w.raw("/>\n")
		return
	}
	w.raw(">")
	w.escaped(text)
	w.raw("</", name, ">\n")
}
