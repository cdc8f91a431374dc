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

// The limits of a custom mapping. They are higher than a mapping that is written by hand needs.
const (
	maxDepth   = 8
	maxRules   = 500
	maxPattern = 2000 // characters
)

// A mappingParser parses the file of a custom mapping. It continues after a problem, so that one error names all of them.
type mappingParser struct {
	file     string
	problems []problem
	rules    int
}

type problem struct {
	line int
	text string
}

func (r *mappingParser) addProblem(at *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, problem{at.Line, fmt.Sprintf(format, args...)})
}

// err returns all problems, by line.
func (r *mappingParser) err() error {
	slices.SortStableFunc(r.problems, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var all []error
	for _, p := range r.problems {
		all = append(all, fmt.Errorf("%s:%d: %s", r.file, p.line, p.text))
	}
	return errors.Join(all...)
}

// parseMapping parses a custom mapping. If it has problems, the error names all of them.
func parseMapping(file string, text []byte) (mapping, error) {
	if len(text) > maxMappingBytes {
		return mapping{}, fmt.Errorf("%s: the file is larger than the limit of %d bytes", file, maxMappingBytes)
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return mapping{}, fmt.Errorf("%s: the file is empty: add at least name, root and elements", file)
		}
		return mapping{}, fmt.Errorf("%s: not valid YAML: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	r := &mappingParser{file: file}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		r.addProblem(&document, "a file contains one mapping: move everything after the line --- to another file")
	}
	p := r.mapping(document.Content[0])
	if err := r.err(); err != nil {
		return mapping{}, err
	}
	return mapping{Name: p.name, Title: p.title, schema: p.schema(), write: p.write, custom: text}, nil
}

// mapping parses the top level of the file.
func (r *mappingParser) mapping(at *yaml.Node) (p customMapping) {
	of := r.keys(at, "name", "title", "namespace", "root", "elements")
	if of == nil {
		return p
	}
	for _, needed := range []string{"name", "root", "elements"} {
		if of[needed] == nil {
			r.addProblem(at, "%s is missing", needed)
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
	p.root.rules = r.list(of["elements"], ruleContext{depth: 1})
	r.checkDuplicates(p.root)
	return p
}

var mappingName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

func (r *mappingParser) checkName(at *yaml.Node, name string) {
	if !mappingName.MatchString(name) {
		r.addProblem(at, "%q is not a valid name: use lower-case letters, digits and dashes, starting with a letter", name)
	}
	if slices.ContainsFunc(builtin, func(m mapping) bool { return m.Name == name }) {
		r.addProblem(at, "%q is a built-in mapping: choose another name", name)
	}
}

func (r *mappingParser) checkSpace(at *yaml.Node, space string) {
	u, err := url.Parse(space)
	if err != nil || u.Scheme == "" || strings.ContainsAny(space, " \t\n\"<>") || strings.HasPrefix(space, "http://www.w3.org/") {
		r.addProblem(at, "%q is not a valid namespace: use an address of your own, such as https://example.com/invoice", space)
	}
}

var xmlName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

func (r *mappingParser) checkXMLName(at *yaml.Node, name string) {
	if !xmlName.MatchString(name) || strings.HasPrefix(strings.ToLower(name), "xml") {
		r.addProblem(at, "%q is not a valid XML name: use letters, digits, dashes, dots and underscores, starting with a letter and not with xml", name)
	}
}

// keys returns the values of a YAML mapping by key. Each key may occur once, and only the known keys are allowed.
func (r *mappingParser) keys(at *yaml.Node, known ...string) map[string]*yaml.Node {
	if at.Kind != yaml.MappingNode {
		r.addProblem(at, "expected lines of the form key: value, with the keys %s", strings.Join(known, ", "))
		return nil
	}
	of := make(map[string]*yaml.Node)
	for i := 0; i < len(at.Content); i += 2 {
		key, value := at.Content[i], at.Content[i+1]
		switch {
		case !slices.Contains(known, key.Value):
			r.addProblem(key, "unknown key %q: use %s", key.Value, strings.Join(known, ", "))
		case of[key.Value] != nil:
			r.addProblem(key, "%s occurs twice: remove one", key.Value)
		case value.Kind == yaml.AliasNode:
			r.addProblem(key, "%s: anchors and aliases are not supported: write the value here", key.Value)
		default:
			of[key.Value] = value
		}
	}
	return of
}

// text reads a string value.
func (r *mappingParser) text(at *yaml.Node, key string) string {
	if at == nil {
		return ""
	}
	if at.Kind != yaml.ScalarNode || strings.TrimSpace(at.Value) == "" || at.Tag == "!!null" {
		r.addProblem(at, "%s: expected a text", key)
		return ""
	}
	return at.Value
}

// boolean reads a value that is true or false.
func (r *mappingParser) boolean(at *yaml.Node, key string) bool {
	if at == nil {
		return false
	}
	if at.Kind != yaml.ScalarNode || at.Value != "true" && at.Value != "false" {
		r.addProblem(at, "%s: use true or false", key)
	}
	return at.Value == "true"
}

// choice reads one of several values. The first is the default.
func (r *mappingParser) choice(at *yaml.Node, key string, of ...string) string {
	if at == nil {
		return of[0]
	}
	if at.Kind != yaml.ScalarNode || !slices.Contains(of, at.Value) {
		r.addProblem(at, "%s: use one of %s", key, strings.Join(of, ", "))
		return of[0]
	}
	return at.Value
}
