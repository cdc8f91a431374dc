package gateway

import (
	"regexp"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// A customMapping is a parsed custom mapping.
type customMapping struct {
	name, title, space string
	root               rule // always written
}

// A rule defines an element or an attribute.
type rule struct {
	name      string
	attribute bool
	line      int // in its file

	// Where it searches, within the scope of the enclosing rule.
	pages  pageRange
	region *pdf.Box

	// What it reads there. If all are empty, it reads the text of the region, or has only child elements.
	find   []*regexp.Regexp // the first that matches is used
	in     string           // row, line or page: the texts that they are matched against
	groups string           // what named groups become: elements or attributes
	field  string
	about  string
	fixed  string

	each     bool // all matches, not only the first
	required bool
	fallback string // used when no value is found

	rules []rule // inside the element; they search only in its match
}

// A node is an element as it will be written.
type node struct {
	name       string
	text       string
	attributes []attribute
	nodes      []node
}

func (n node) empty() bool { return n.text == "" && len(n.attributes) == 0 && len(n.nodes) == 0 }

// write writes the XML of a document. If a required value is missing, it returns a refusal that names the element.
func (p customMapping) write(w *writer, d *pdf.Document) error {
	root := node{name: p.root.name, attributes: []attribute{{"xmlns", p.space}}}
	if err := p.root.fill(&root, view{document: d, pages: wholePages(d)}, p.root.name); err != nil {
		return err
	}
	w.node(root)
	return nil
}

func (w *writer) node(n node) {
	if len(n.nodes) == 0 {
		w.leaf(n.name, n.text, n.attributes...)
		return
	}
	w.open(n.name, n.attributes...)
	for _, inner := range n.nodes {
		w.node(inner)
	}
	w.close(n.name)
}

// fill adds the results of the inner rules to a node.
func (r rule) fill(n *node, from view, path string) error {
	for _, inner := range r.rules {
		found, err := inner.nodes(from, path+"/"+inner.step())
		if err != nil {
			return err
		}
		for _, f := range found {
			if inner.attribute {
				n.attributes = append(n.attributes, attribute{f.name, f.text})
			} else {
				n.nodes = append(n.nodes, f)
			}
		}
	}
	return nil
}

// step returns the name of a rule in a path.
func (r rule) step() string {
	if r.attribute {
		return "@" + r.name
	}
	return r.name
}

// nodes returns the nodes of a rule: at most one, or all matches for a rule with each.
func (r rule) nodes(from view, path string) ([]node, error) {
	made, err := r.extract(from.only(r.pages, r.region), path)
	if err != nil {
		return nil, err
	}
	made = slices.DeleteFunc(made, node.empty)
	if len(made) == 0 && r.fallback != "" {
		made = []node{{name: r.name, text: r.fallback}}
	}
	if len(made) == 0 && r.required {
		return nil, refuse(codeMissing, "The mapping requires "+path+", and the PDF has no value for it.")
	}
	return made, nil
}

// extract reads the values of a rule in its scope.
func (r rule) extract(from view, path string) ([]node, error) {
	if len(r.find) > 0 {
		return r.match(from, path)
	}
	n := node{name: r.name}
	switch {
	case r.field != "":
		n.text = from.field(r.field)
	case r.about != "":
		n.text = normalise(aboutValue(from.document, r.about))
	case r.fixed != "":
		n.text = r.fixed
	case r.region != nil && !r.hasChildren():
		n.text = normalise(from.text())
	}
	err := r.fill(&n, from, path)
	return []node{n}, err
}

// match returns a node for each match.
func (r rule) match(from view, path string) (made []node, err error) {
	for _, found := range r.matches(from) {
		n := r.node(found)
		if err := r.fill(&n, view{document: from.document, plain: found.text}, path); err != nil {
			return nil, err
		}
		made = append(made, n)
	}
	return made, nil
}

// A match is one match of a pattern.
type match struct {
	pattern *regexp.Regexp
	text    string   // all of it
	groups  []string // by the pattern's group numbers
}

// matches returns all matches for a rule with each, otherwise the first. A later pattern is used only if the earlier ones match nothing: nothing in the same row, line or
// page for a rule with each, and nothing at all otherwise.
func (r rule) matches(from view) (all []match) {
	units := from.units(r.in)
	if r.each {
		for _, unit := range units {
			all = append(all, r.first(unit, -1)...)
		}
		return all
	}
	for _, pattern := range r.find {
		one := rule{find: []*regexp.Regexp{pattern}}
		for _, unit := range units {
			if found := one.first(unit, 1); found != nil {
				return found
			}
		}
	}
	return nil
}

// first returns up to limit matches of the first pattern that matches; -1 means all.
func (r rule) first(unit string, limit int) (all []match) {
	for _, pattern := range r.find {
		for _, groups := range pattern.FindAllStringSubmatch(unit, limit) {
			all = append(all, match{pattern, groups[0], groups})
		}
		if all != nil {
			return all
		}
	}
	return nil
}

// node returns the element of a match. Named groups become child elements or attributes. The text is the unnamed group or, if there are no groups, the whole match. An
// element with child elements has no text.
func (r rule) node(m match) node {
	n := node{name: r.name}
	for _, name := range r.groupNames() {
		value := ""
		if at := m.pattern.SubexpIndex(name); at >= 0 {
			value = normalise(m.groups[at])
		}
		switch {
		case value == "":
		case r.groups == groupsAttributes:
			n.attributes = append(n.attributes, attribute{name, value})
		default:
			n.nodes = append(n.nodes, node{name: name, text: value})
		}
	}
	if r.hasChildren() {
		return n
	}
	if at := unnamedGroup(m.pattern); at > 0 {
		n.text = normalise(m.groups[at])
	} else if len(r.groupNames()) == 0 {
		n.text = normalise(m.text)
	}
	return n
}

const (
	groupsElements   = "elements"
	groupsAttributes = "attributes"
)

// hasChildren reports whether a rule's element has child elements, and therefore no text.
func (r rule) hasChildren() bool {
	return len(r.groupNames()) > 0 && r.groups != groupsAttributes || slices.ContainsFunc(r.rules, func(inner rule) bool { return !inner.attribute })
}

// groupNames returns the named groups of all patterns, in the order of their first occurrence.
func (r rule) groupNames() (all []string) {
	for _, pattern := range r.find {
		for _, name := range pattern.SubexpNames() {
			if name != "" && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// unnamedGroup returns the number of a pattern's first unnamed group, or -1.
func unnamedGroup(pattern *regexp.Regexp) int {
	for i, name := range pattern.SubexpNames() {
		if i > 0 && name == "" {
			return i
		}
	}
	return -1
}

// normalise joins the words of a text with single spaces.
func normalise(text string) string { return strings.Join(strings.Fields(text), " ") }
