package gateway

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"go.yaml.in/yaml/v3"
)

// around is what a rule stands in.
type around struct {
	depth int
	found bool // a pattern's match: a text that has no pages and no places
}

// list reads rules.
func (r *reading) list(at *yaml.Node, in around) (all []rule) {
	if at == nil {
		return nil
	}
	if at.Kind != yaml.SequenceNode || len(at.Content) == 0 {
		r.complain(at, "elements: here belongs a list, each of its entries beginning with - element: or - attribute:")
		return nil
	}
	if in.depth > deepest {
		r.complain(at, "elements: at most %d levels may lie in each other", deepest)
		return nil
	}
	for _, entry := range at.Content {
		if r.rules++; r.rules > most {
			r.complain(entry, "at most %d elements and attributes may be in a file", most)
			return all
		}
		all = append(all, r.rule(entry, in))
	}
	return all
}

// rule reads one.
func (r *reading) rule(at *yaml.Node, in around) (u rule) {
	of := r.keys(at, "element", "attribute", "find", "in", "groups", "field", "about", "fixed", "region", "page", "each", "required", "default", "elements")
	if of == nil {
		return u
	}
	if (of["element"] == nil) == (of["attribute"] == nil) {
		r.complain(at, "say what this makes: element: NAME or attribute: NAME, one of them")
	}
	u.line = at.Line
	u.attribute = of["attribute"] != nil
	u.name = r.text(of["element"], "element") + r.text(of["attribute"], "attribute")
	if u.name != "" {
		r.checkXMLName(at, u.name)
	}
	u.pages, u.region = r.pages(of["page"]), r.region(of["region"])
	u.find = r.patterns(of["find"])
	u.in = r.choice(of["in"], "in", inRow, inLine, inPage)
	u.groups = r.choice(of["groups"], "groups", groupsElements, groupsAttributes)
	u.field, u.about, u.fixed = r.text(of["field"], "field"), r.text(of["about"], "about"), r.text(of["fixed"], "fixed")
	if names := append([]string{"version", "pages"}, aboutNames...); u.about != "" && !slices.Contains(names, u.about) {
		r.complain(of["about"], "about: a document does not tell its %q: say one of %s", u.about, strings.Join(names, ", "))
	}
	u.each, u.required, u.fallback = r.truth(of["each"], "each"), r.truth(of["required"], "required"), r.text(of["default"], "default")
	u.rules = r.list(of["elements"], around{in.depth + 1, in.found || of["find"] != nil})
	r.checkTogether(at, of, in)
	r.checkGroups(at, u)
	r.checkTwins(u)
	return u
}

// checkTogether refuses keys that make no sense together.
func (r *reading) checkTogether(at *yaml.Node, of map[string]*yaml.Node, in around) {
	var sources []string
	for _, key := range []string{"find", "field", "about", "fixed"} {
		if of[key] != nil {
			sources = append(sources, key)
		}
	}
	if len(sources) > 1 {
		r.complain(at, "%s cannot stand together: keep one", strings.Join(sources, " and "))
	}
	if len(sources) == 0 && of["region"] == nil && of["elements"] == nil {
		r.complain(at, "nothing says where the value comes from: add find, field, about, fixed, region or elements")
	}
	for _, pair := range [][2]string{{"required", "default"}, {"each", "default"}, {"elements", "default"}, {"attribute", "each"}, {"attribute", "elements"}, {"attribute", "groups"}} {
		if of[pair[0]] != nil && of[pair[1]] != nil {
			r.complain(of[pair[1]], "%s and %s cannot stand together: keep one", pair[0], pair[1])
		}
	}
	for _, key := range []string{"in", "groups", "each"} {
		if of[key] != nil && of["find"] == nil {
			r.complain(of[key], "%s belongs to find: add that, or leave this out", key)
		}
	}
	for _, key := range []string{"page", "region"} {
		if of[key] != nil && in.found {
			r.complain(of[key], "%s: what find has found is only text, without pages and places: leave it out, or put it beside that find", key)
		}
		if of[key] != nil && len(sources) == 1 && sources[0] != "find" {
			r.complain(of[key], "%s says nothing about %s: leave it out", key, sources[0])
		}
	}
}

// checkGroups refuses groups of patterns that would be lost.
func (r *reading) checkGroups(at *yaml.Node, u rule) {
	if len(u.find) == 0 {
		if u.holds() && (u.field != "" || u.about != "" || u.fixed != "") {
			r.complain(at, "an element that holds others has no text: put its value into an element of its own")
		}
		return
	}
	names := u.groupNames()
	for _, name := range names {
		if u.attribute {
			r.complain(at, "find: an attribute has no parts: write (...) instead of (?P<%s>...)", name)
		} else {
			r.checkXMLName(at, name)
		}
	}
	if u.holds() && u.fallback != "" {
		r.complain(at, "default: an element that holds others has no text: leave it out")
	}
	for _, pattern := range u.find {
		loose := 0
		for _, name := range pattern.SubexpNames()[1:] {
			if name == "" {
				loose++
			}
		}
		if u.holds() && loose > 0 {
			r.complain(at, "find: the text of a group without a name would be lost here: name it, (?P<name>...), or write (?:...)")
		} else if loose > 1 {
			r.complain(at, "find: only one group without a name can be the text: name the others, (?P<name>...), or write (?:...)")
		}
	}
}

// checkTwins refuses two things of one name in an element: nobody could tell them apart.
func (r *reading) checkTwins(u rule) {
	seen := make(map[string]bool)
	for _, name := range u.groupNames() {
		seen[fmt.Sprint(u.groups == groupsAttributes, name)] = true
	}
	for _, inner := range u.rules {
		name := fmt.Sprint(inner.attribute, inner.name)
		if seen[name] && inner.name != "" {
			r.complain(&yaml.Node{Line: inner.line}, "%s is in %s twice: give one another name, or write one find with several patterns", inner.step(), u.name)
		}
		seen[name] = true
	}
}

// patterns reads one pattern or several.
func (r *reading) patterns(at *yaml.Node) (all []*regexp.Regexp) {
	if at == nil {
		return nil
	}
	list := []*yaml.Node{at}
	if at.Kind == yaml.SequenceNode {
		list = at.Content
	}
	if len(list) == 0 || len(list) > most {
		r.complain(at, "find: here belongs a pattern, or a list of some")
	}
	for _, n := range list {
		text := r.text(n, "find")
		if text == "" {
			continue
		}
		if len(text) > longest {
			r.complain(n, "find: a pattern has at most %d characters: use several", longest)
			continue
		}
		pattern, err := regexp.Compile(text)
		switch {
		case err != nil:
			r.complain(n, "find: this is not a pattern: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		case pattern.MatchString(""):
			r.complain(n, "find: this pattern is content with nothing at all, and would match everywhere: let it ask for something (+ instead of *)")
		default:
			all = append(all, pattern)
		}
	}
	return all
}

var rangeShape = regexp.MustCompile(`^([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}|last))?$`)

// pages reads which pages are meant: 2, 2-4, 2-last, first, last or all.
func (r *reading) pages(at *yaml.Node) pageRange {
	switch {
	case at == nil || at.Value == "all":
		return pageRange{}
	case at.Value == "first":
		return pageRange{1, 1}
	case at.Value == "last":
		return pageRange{-1, -1}
	}
	parts := rangeShape.FindStringSubmatch(at.Value)
	if parts == nil {
		r.complain(at, "page: say a number, such as 1, or a range, such as 2-4 or 2-last, or first, last or all")
		return pageRange{}
	}
	first, _ := strconv.Atoi(parts[1])
	last, _ := strconv.Atoi(parts[2])
	if parts[2] == "last" {
		return pageRange{first, -1}
	}
	if parts[2] == "" {
		last = first
	}
	if last < first {
		r.complain(at, "page: %d-%d holds no page: write the smaller number first", first, last)
	}
	return pageRange{first, last}
}

// region reads a part of a page.
func (r *reading) region(at *yaml.Node) *pdf.Box {
	if at == nil {
		return nil
	}
	of := r.keys(at, "x", "y", "width", "height")
	if of == nil {
		return nil
	}
	var sides [4]float64
	for i, key := range []string{"x", "y", "width", "height"} {
		n := of[key]
		if n == nil {
			r.complain(at, "region: %s is missing: lengths are points (72 to the inch), from the page's upper left corner", key)
			continue
		}
		v, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil || math.IsInf(v, 0) || math.IsNaN(v) || v < 0 || i > 1 && v == 0 {
			r.complain(n, "region: %s is a length in points, such as 72 for an inch", key)
		}
		sides[i] = v
	}
	return &pdf.Box{X: sides[0], Y: sides[1], Width: sides[2], Height: sides[3]}
}
