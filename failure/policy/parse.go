package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/holdfastdev/holdfast/failure"
)

// MaxText is how large a file may be, in bytes.
const MaxText = 1 << 20

// Parse reads a file whose failure codes are the built-in ones. The error is of type Mistakes and names them all.
func Parse(text []byte) (*Set, error) { return ParseFor(text, nil) }

// ParseFor reads a file for an application with codes of its own.
func ParseFor(text []byte, taxonomy *failure.Taxonomy) (*Set, error) {
	s, unknown, err := ParseLenient(text, taxonomy)
	if err == nil && len(unknown) > 0 {
		err = unknown
	} else if mistakes, are := err.(Mistakes); are {
		err = append(mistakes, unknown...).sorted()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ParseLenient reads a file that may name codes the taxonomy does not know: they are told, and are no error. What the file says
// about such a code applies to failures that have its name. Workers read the applied policy so, because in a rolling deploy an
// older worker does not know the newest codes and must follow everything else.
func ParseLenient(text []byte, taxonomy *failure.Taxonomy) (s *Set, unknown Mistakes, err error) {
	if m := unreadable(text); m != nil {
		return nil, nil, m
	}
	root, mistakes := document(text)
	if len(mistakes) > 0 {
		return nil, nil, mistakes.sorted()
	}
	r := &reader{taxonomy: taxonomy}
	r.refuseReferences(root)
	s = &Set{text: string(text), taxonomy: taxonomy, sections: map[string]*section{}}
	if len(r.mistakes) == 0 {
		r.file(place{root, ""}, s)
	}
	if len(r.mistakes) > 0 {
		return nil, r.unknown, r.mistakes.sorted()
	}
	return s, r.unknown.sorted(), nil
}

// unreadable finds what no YAML file contains, before anybody tries to make sense of it.
func unreadable(text []byte) Mistakes {
	if len(text) > MaxText {
		return Mistakes{{1, fmt.Sprintf("the file has %d bytes; the limit is %d", len(text), MaxText)}}
	}
	var m Mistakes
	for n, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		strange := func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 }
		if !utf8.Valid(line) || bytes.ContainsFunc(line, strange) {
			m = append(m, Mistake{n + 1, "a character that is no text: save the file as UTF-8 without control characters"})
		}
	}
	return m
}

// document finds the one document of a file.
func document(text []byte) (root *yaml.Node, m Mistakes) {
	defer func() {
		if thrown := recover(); thrown != nil {
			root, m = nil, Mistakes{{1, "this cannot be read as YAML: check the indentation and the brackets"}}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, Mistakes{{1, "the file says nothing: give at least one of " + strings.Join(sectionNames, ", ")}}
	case err != nil:
		return nil, Mistakes{syntax(err)}
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, Mistakes{syntax(err)}
	default:
		return nil, Mistakes{{second.Line, "a second document begins here: keep one, without a line of ---"}}
	}
	if len(first.Content) != 1 || first.Content[0].Tag == "!!null" {
		return nil, Mistakes{{1, "the file says nothing: give at least one of " + strings.Join(sectionNames, ", ")}}
	}
	return first.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax is what YAML itself complains about. There is only ever one: nobody can read on after it.
func syntax(err error) Mistake {
	part := yamlLine.FindStringSubmatch(strings.SplitN(err.Error(), "\n", 2)[0])
	if part == nil {
		return Mistake{1, "this is no YAML: " + err.Error()}
	}
	line, _ := strconv.Atoi(part[1])
	return Mistake{max(1, line), "this is no YAML: " + part[2]}
}

// refuseReferences refuses what makes a file mean more than it shows: anchors, aliases and tags.
func (r *reader) refuseReferences(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.add(n, "an alias (*%.40s): write it out, so that everybody sees what holds", n.Value)
		return // what it stands for was looked at where it stands
	case n.Anchor != "":
		r.add(n, "an anchor (&%.40s): write things out, so that everybody sees what holds", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		r.add(n, "a tag (%.40s): leave it out", n.Tag)
	}
	for _, inner := range n.Content {
		r.refuseReferences(inner)
	}
}
