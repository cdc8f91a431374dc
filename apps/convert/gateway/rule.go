package gateway

import (
	"regexp"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// A plan is a mapping of the user's own, as its file says it.
type plan struct {
	name, title, space string
	root               rule // always there
}

// A rule says what an element or an attribute is made of.
type rule struct {
	name      string
	attribute bool
	line      int // in its file

	// Where it looks: narrower than the rule around it.
	pages  pageRange
	region *pdf.Box

	// What it takes from there. When all are empty it takes what is in the region, or only holds others.
	find   []*regexp.Regexp // the first that matches counts
	in     string           // row, line or page: what each of them is matched with
	groups string           // what named groups become: elements or attributes
	field  string
	about  string
	fixed  string

	each     bool // all matches, not only the first
	required bool
	fallback string // when there is nothing

	rules []rule // inside the element; they look only at what it found
}

// A node is an element as it will be written.
type node struct {
	name       string
	text       string
	attributes []attribute
	nodes      []node
}

func (n node) empty() bool { return n.text == "" && len(n.attributes) == 0 && len(n.nodes) == 0 }

// write makes XML of a document as the plan says. What is required and not there is a refusal that names it.
func (p plan) write(w *writer, d *pdf.Document) error {
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

// fill puts into a node what the rules inside its own find.
func (r rule) fill(n *node, from view, path string) error {
	for _, inner := range r.rules {
		found, err := inner.make(from, path+"/"+inner.step())
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

// step is how a rule is called in a path.
func (r rule) step() string {
	if r.attribute {
		return "@" + r.name
	}
	return r.name
}

// make makes the nodes of a rule: one or none, or as many as there are for one that says each.
func (r rule) make(from view, path string) ([]node, error) {
	made, err := r.look(from.only(r.pages, r.region), path)
	if err != nil {
		return nil, err
	}
	made = slices.DeleteFunc(made, node.empty)
	if len(made) == 0 && r.fallback != "" {
		made = []node{{name: r.name, text: r.fallback}}
	}
	if len(made) == 0 && r.required {
		return nil, refuse(codeMissing, "The mapping needs "+path+", and the PDF holds nothing for it.")
	}
	return made, nil
}

// look takes what the rule wants from where it looks.
func (r rule) look(from view, path string) ([]node, error) {
	if len(r.find) > 0 {
		return r.match(from, path)
	}
	n := node{name: r.name}
	switch {
	case r.field != "":
		n.text = from.field(r.field)
	case r.about != "":
		n.text = tidy(aboutValue(from.document, r.about))
	case r.fixed != "":
		n.text = r.fixed
	case r.region != nil && !r.holds():
		n.text = tidy(from.text())
	}
	err := r.fill(&n, from, path)
	return []node{n}, err
}

// match makes a node of each match, or of the first.
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

// A match is what a pattern found.
type match struct {
	pattern *regexp.Regexp
	text    string   // all of it
	groups  []string // as the pattern numbers them
}

// matches finds all that the rule wants. A pattern further down counts only where those above it find nothing: nothing at all when one match is wanted,
// nothing in the same row, line or page when all are.
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

// first gives the matches of the first pattern that has some.
func (r rule) first(unit string, most int) (all []match) {
	for _, pattern := range r.find {
		for _, groups := range pattern.FindAllStringSubmatch(unit, most) {
			all = append(all, match{pattern, groups[0], groups})
		}
		if all != nil {
			return all
		}
	}
	return nil
}

// node makes an element of a match. Named groups become elements or attributes; without them the first group is the text, or else the whole match. One
// that holds elements has no text of its own.
func (r rule) node(m match) node {
	n := node{name: r.name}
	for _, name := range r.groupNames() {
		value := ""
		if at := m.pattern.SubexpIndex(name); at >= 0 {
			value = tidy(m.groups[at])
		}
		switch {
		case value == "":
		case r.groups == groupsAttributes:
			n.attributes = append(n.attributes, attribute{name, value})
		default:
			n.nodes = append(n.nodes, node{name: name, text: value})
		}
	}
	if r.holds() {
		return n
	}
	if at := unnamed(m.pattern); at > 0 {
		n.text = tidy(m.groups[at])
	} else if len(r.groupNames()) == 0 {
		n.text = tidy(m.text)
	}
	return n
}

const (
	groupsElements   = "elements"
	groupsAttributes = "attributes"
)

// holds reports whether a rule's element holds others, and so no text.
func (r rule) holds() bool {
	return len(r.groupNames()) > 0 && r.groups != groupsAttributes || slices.ContainsFunc(r.rules, func(inner rule) bool { return !inner.attribute })
}

// groupNames are those of all patterns, in the order in which they come first.
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

// unnamed is the number of a pattern's first group without a name, -1 when there is none.
func unnamed(pattern *regexp.Regexp) int {
	for i, name := range pattern.SubexpNames() {
		if i > 0 && name == "" {
			return i
		}
	}
	return -1
}

// tidy makes one line of a text, without space around it.
func tidy(text string) string { return strings.Join(strings.Fields(text), " ") }
