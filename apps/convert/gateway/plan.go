package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The bounds of a mapping of the user's own. Nobody needs more who writes it by hand.
const (
	deepest = 8
	most    = 500 // rules
	longest = 2000
)

// A reading is a mapping's file that is being read. It goes on after a problem, so that all of them can be told at once.
type reading struct {
	file     string
	problems []problem
	rules    int
}

type problem struct {
	line int
	text string
}

func (r *reading) complain(at *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, problem{at.Line, fmt.Sprintf(format, args...)})
}

// err is everything that is wrong, by line.
func (r *reading) err() error {
	slices.SortStableFunc(r.problems, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var all []error
	for _, p := range r.problems {
		all = append(all, fmt.Errorf("%s:%d: %s", r.file, p.line, p.text))
	}
	return errors.Join(all...)
}

// parseMapping reads a mapping of the user's own. It takes it whole or not at all.
func parseMapping(file string, text []byte) (mapping, error) {
	if len(text) > largestMapping {
		return mapping{}, fmt.Errorf("%s: a mapping has at most %d bytes: leave something out", file, largestMapping)
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return mapping{}, fmt.Errorf("%s: the file is empty: write at least name, root and elements", file)
		}
		return mapping{}, fmt.Errorf("%s: this is not YAML: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	r := &reading{file: file}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		r.complain(&document, "a file holds one mapping: put what follows the line --- into a file of its own")
	}
	p := r.plan(document.Content[0])
	if err := r.err(); err != nil {
		return mapping{}, err
	}
	return mapping{Name: p.name, Title: p.title, schema: p.schema(), write: p.write, own: text}, nil
}

// plan reads the file's uppermost level.
func (r *reading) plan(at *yaml.Node) (p plan) {
	of := r.keys(at, "name", "title", "namespace", "root", "elements")
	if of == nil {
		return p
	}
	for _, needed := range []string{"name", "root", "elements"} {
		if of[needed] == nil {
			r.complain(at, "%s is missing", needed)
		}
	}
	p.name = r.text(of["name"], "name")
	if n := of["name"]; n != nil && p.name != "" {
		r.checkName(n, p.name)
	}
	p.title = cmp.Or(r.text(of["title"], "title"), p.name)
	p.space = cmp.Or(r.text(of["namespace"], "namespace"), "urn:holdfast:mapping:"+p.name)
	if n := of["namespace"]; n != nil {
		r.checkSpace(n, p.space)
	}
	p.root.name = r.text(of["root"], "root")
	if n := of["root"]; n != nil && p.root.name != "" {
		r.checkXMLName(n, p.root.name)
	}
	p.root.rules = r.list(of["elements"], around{depth: 1})
	r.checkTwins(p.root)
	return p
}

var nameShape = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

func (r *reading) checkName(at *yaml.Node, name string) {
	if !nameShape.MatchString(name) {
		r.complain(at, "%q cannot be a mapping's name: use small letters, digits and dashes, a letter first", name)
	}
	if slices.ContainsFunc(builtin, func(m mapping) bool { return m.Name == name }) {
		r.complain(at, "%q is a built-in mapping: choose another name", name)
	}
}

func (r *reading) checkSpace(at *yaml.Node, space string) {
	u, err := url.Parse(space)
	if err != nil || u.Scheme == "" || strings.ContainsAny(space, " \t\n\"<>") || strings.HasPrefix(space, "http://www.w3.org/") {
		r.complain(at, "%q cannot be a namespace: write an address of your own, such as https://example.com/invoice", space)
	}
}

var xmlName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

func (r *reading) checkXMLName(at *yaml.Node, name string) {
	if !xmlName.MatchString(name) || strings.HasPrefix(strings.ToLower(name), "xml") {
		r.complain(at, "%q cannot be a name in XML: use letters, digits, dashes, dots and underscores, a letter first, and not xml", name)
	}
}

// keys takes a YAML mapping apart. It knows each key once, and no others than these.
func (r *reading) keys(at *yaml.Node, known ...string) map[string]*yaml.Node {
	if at.Kind != yaml.MappingNode {
		r.complain(at, "here belong lines of the form key: value, with the keys %s", strings.Join(known, ", "))
		return nil
	}
	of := make(map[string]*yaml.Node)
	for i := 0; i < len(at.Content); i += 2 {
		key, value := at.Content[i], at.Content[i+1]
		switch {
		case !slices.Contains(known, key.Value):
			r.complain(key, "%q is not known here: use %s", key.Value, strings.Join(known, ", "))
		case of[key.Value] != nil:
			r.complain(key, "%s is here twice: leave one out", key.Value)
		case value.Kind == yaml.AliasNode:
			r.complain(key, "%s: write it out: anchors and aliases are not used here", key.Value)
		default:
			of[key.Value] = value
		}
	}
	return of
}

// text reads a value that is one text.
func (r *reading) text(at *yaml.Node, key string) string {
	if at == nil {
		return ""
	}
	if at.Kind != yaml.ScalarNode || strings.TrimSpace(at.Value) == "" || at.Tag == "!!null" {
		r.complain(at, "%s: here belongs a text", key)
		return ""
	}
	return at.Value
}

// truth reads a value that is true or false.
func (r *reading) truth(at *yaml.Node, key string) bool {
	if at == nil {
		return false
	}
	if at.Kind != yaml.ScalarNode || at.Value != "true" && at.Value != "false" {
		r.complain(at, "%s: say true or false", key)
	}
	return at.Value == "true"
}

// choice reads a value that is one of a few. The first is taken when it is missing.
func (r *reading) choice(at *yaml.Node, key string, of ...string) string {
	if at == nil {
		return of[0]
	}
	if at.Kind != yaml.ScalarNode || !slices.Contains(of, at.Value) {
		r.complain(at, "%s: say one of %s", key, strings.Join(of, ", "))
		return of[0]
	}
	return at.Value
}
