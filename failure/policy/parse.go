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

// MaxText is the maximum size of a file in bytes.
const MaxText = 1 << 20

// Parse parses a file that uses only built-in failure codes. An error is of type Mistakes and contains every mistake.
func Parse(text []byte) (*Set, error) { return ParseFor(text, nil) }

// ParseFor parses a file for an application with codes of its own.
func ParseFor(text []byte, taxonomy *failure.Taxonomy) (*Set, error) {
	s, unknown, err := ParseLenient(text, taxonomy)
	if err == nil && len(unknown) > 0 {
		err = unknown
	} else if mistakes, are := err.(Problems); are {
		err = append(mistakes, unknown...).sorted()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ParseLenient parses a file that may name codes that are not in the taxonomy: it returns them as unknown, and not as an
// error. The settings for such a code apply to failures with its name. Workers read the applied policy this way, because in
// a rolling deployment an older worker does not know the newest codes and must apply everything else.
func ParseLenient(text []byte, taxonomy *failure.Taxonomy) (s *Set, unknown Problems, err error) {
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

// unreadable finds characters that no YAML file may contain, before the file is parsed.
func unreadable(text []byte) Problems {
	if len(text) > MaxText {
		return Problems{{1, fmt.Sprintf("the file has %d bytes; the limit is %d", len(text), MaxText)}}
	}
	var m Problems
	for n, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		strange := func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 }
		if !utf8.Valid(line) || bytes.ContainsFunc(line, strange) {
			m = append(m, Problem{n + 1, "an invalid character: save the file as UTF-8 without control characters"})
		}
	}
	return m
}

// document returns the only document of a file.
func document(text []byte) (root *yaml.Node, m Problems) {
	defer func() {
		if thrown := recover(); thrown != nil {
			root, m = nil, Problems{{1, "this cannot be read as YAML: check the indentation and the brackets"}}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, Problems{{1, "the file is empty: give at least one of " + strings.Join(sectionNames, ", ")}}
	case err != nil:
		return nil, Problems{syntax(err)}
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, Problems{syntax(err)}
	default:
		return nil, Problems{{second.Line, "a second document begins here: keep one, without a line of ---"}}
	}
	if len(first.Content) != 1 || first.Content[0].Tag == "!!null" {
		return nil, Problems{{1, "the file is empty: give at least one of " + strings.Join(sectionNames, ", ")}}
	}
	return first.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax returns a mistake that the YAML parser reported. There is at most one, because the parser stops there.
func syntax(err error) Problem {
	part := yamlLine.FindStringSubmatch(strings.SplitN(err.Error(), "\n", 2)[0])
	if part == nil {
		return Problem{1, "this is not valid YAML: " + err.Error()}
	}
	line, _ := strconv.Atoi(part[1])
	return Problem{max(1, line), "this is not valid YAML: " + part[2]}
}

// refuseReferences refuses anchors, aliases and tags, so that a file shows everything that it sets.
func (r *reader) refuseReferences(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.add(n, "an alias (*%.40s): aliases are not allowed, write the value out", n.Value)
		return // its value is checked at the anchor
	case n.Anchor != "":
		r.add(n, "an anchor (&%.40s): anchors are not allowed, remove it", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		r.add(n, "a tag (%.40s): tags are not allowed, remove it", n.Tag)
	}
	for _, inner := range n.Content {
		r.refuseReferences(inner)
	}
}
