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

// A ruleContext says where a rule is.
type ruleContext struct {
	depth   int
	inMatch bool // inside an element with find: it searches in a text without pages and positions
}

// list parses a list of rules.
func (r *mappingParser) list(at *yaml.Node, in ruleContext) (all []rule) {
	if at == nil {
		return nil
	}
	if at.Kind != yaml.SequenceNode || len(at.Content) == 0 {
		r.addProblem(at, "elements: expected a list whose entries start with - element: or - attribute:")
		return nil
	}
	if in.depth > maxDepth {
		r.addProblem(at, "elements: nested too deep, the limit is %d levels", maxDepth)
		return nil
	}
	for _, entry := range at.Content {
		if r.rules++; r.rules > maxRules {
			r.addProblem(entry, "too many elements and attributes, the limit is %d", maxRules)
			return all
		}
		all = append(all, r.rule(entry, in))
	}
	return all
}

// rule parses one rule.
func (r *mappingParser) rule(at *yaml.Node, in ruleContext) (u rule) {
	of := r.keys(at, "element", "attribute", "find", "in", "groups", "field", "about", "fixed", "region", "page", "each", "required", "default", "elements")
	if of == nil {
		return u
	}
	if (of["element"] == nil) == (of["attribute"] == nil) {
		r.addProblem(at, "add element: NAME or attribute: NAME, one of them")
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
		r.addProblem(of["about"], "about: unknown metadata %q: use one of %s", u.about, strings.Join(names, ", "))
	}
	u.each, u.required, u.fallback = r.boolean(of["each"], "each"), r.boolean(of["required"], "required"), r.text(of["default"], "default")
	u.rules = r.list(of["elements"], ruleContext{in.depth + 1, in.inMatch || of["find"] != nil})
	r.checkCombination(at, of, in)
	r.checkGroups(at, u)
	r.checkDuplicates(u)
	return u
}

// checkCombination refuses keys that exclude each other.
func (r *mappingParser) checkCombination(at *yaml.Node, of map[string]*yaml.Node, in ruleContext) {
	var sources []string
	for _, key := range []string{"find", "field", "about", "fixed"} {
		if of[key] != nil {
			sources = append(sources, key)
		}
	}
	if len(sources) > 1 {
		r.addProblem(at, "%s exclude each other: keep one", strings.Join(sources, " and "))
	}
	if len(sources) == 0 && of["region"] == nil && of["elements"] == nil {
		r.addProblem(at, "the rule has no value: add find, field, about, fixed, region or elements")
	}
	for _, pair := range [][2]string{{"required", "default"}, {"each", "default"}, {"elements", "default"}, {"attribute", "each"}, {"attribute", "elements"}, {"attribute", "groups"}} {
		if of[pair[0]] != nil && of[pair[1]] != nil {
			r.addProblem(of[pair[1]], "%s and %s exclude each other: keep one", pair[0], pair[1])
		}
	}
	for _, key := range []string{"in", "groups", "each"} {
		if of[key] != nil && of["find"] == nil {
			r.addProblem(of[key], "%s needs find: add find, or remove this", key)
		}
	}
	for _, key := range []string{"page", "region"} {
		if of[key] != nil && in.inMatch {
			r.addProblem(of[key], "%s: a match of find has no pages and positions: remove this, or move it to the element with find", key)
		}
		if of[key] != nil && len(sources) == 1 && sources[0] != "find" {
			r.addProblem(of[key], "%s has no effect on %s: remove it", key, sources[0])
		}
	}
}

// checkGroups refuses groups in patterns whose text would be lost.
func (r *mappingParser) checkGroups(at *yaml.Node, u rule) {
	if len(u.find) == 0 {
		if u.hasChildren() && (u.field != "" || u.about != "" || u.fixed != "") {
			r.addProblem(at, "an element with child elements has no text: put its value into a child element")
		}
		return
	}
	names := u.groupNames()
	for _, name := range names {
		if u.attribute {
			r.addProblem(at, "find: an attribute has only one value: write (...) instead of (?P<%s>...)", name)
		} else {
			r.checkXMLName(at, name)
		}
	}
	if u.hasChildren() && u.fallback != "" {
		r.addProblem(at, "default: an element with child elements has no text: remove default")
	}
	for _, pattern := range u.find {
		unnamed := 0
		for _, name := range pattern.SubexpNames()[1:] {
			if name == "" {
				unnamed++
			}
		}
		if u.hasChildren() && unnamed > 0 {
			r.addProblem(at, "find: the text of an unnamed group would be lost here: name it, (?P<name>...), or write (?:...)")
		} else if unnamed > 1 {
			r.addProblem(at, "find: only one unnamed group can be the text: name the others, (?P<name>...), or write (?:...)")
		}
	}
}

// checkDuplicates refuses two children or two attributes of the same name in an element.
func (r *mappingParser) checkDuplicates(u rule) {
	seen := make(map[string]bool)
	for _, name := range u.groupNames() {
		seen[fmt.Sprint(u.groups == groupsAttributes, name)] = true
	}
	for _, inner := range u.rules {
		name := fmt.Sprint(inner.attribute, inner.name)
		if seen[name] && inner.name != "" {
			r.addProblem(&yaml.Node{Line: inner.line}, "%s occurs twice in %s: rename one, or use one find with several patterns", inner.step(), u.name)
		}
		seen[name] = true
	}
}

// patterns parses one pattern or a list of patterns.
func (r *mappingParser) patterns(at *yaml.Node) (all []*regexp.Regexp) {
	if at == nil {
		return nil
	}
	list := []*yaml.Node{at}
	if at.Kind == yaml.SequenceNode {
		list = at.Content
	}
	if len(list) == 0 || len(list) > maxRules {
		r.addProblem(at, "find: expected a pattern or a list of patterns")
	}
	for _, n := range list {
		text := r.text(n, "find")
		if text == "" {
			continue
		}
		if len(text) > maxPattern {
			r.addProblem(n, "find: the pattern is longer than %d characters: use several patterns", maxPattern)
			continue
		}
		pattern, err := regexp.Compile(text)
		switch {
		case err != nil:
			r.addProblem(n, "find: not a valid regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		case pattern.MatchString(""):
			r.addProblem(n, "find: the pattern matches an empty text, so it would match everywhere: require at least one character (+ instead of *)")
		default:
			all = append(all, pattern)
		}
	}
	return all
}

var pageRangePattern = regexp.MustCompile(`^([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}|last))?$`)

// pages parses a range of pages: 2, 2-4, 2-last, first, last or all.
func (r *mappingParser) pages(at *yaml.Node) pageRange {
	switch {
	case at == nil || at.Value == "all":
		return pageRange{}
	case at.Value == "first":
		return pageRange{1, 1}
	case at.Value == "last":
		return pageRange{-1, -1}
	}
	parts := pageRangePattern.FindStringSubmatch(at.Value)
	if parts == nil {
		r.addProblem(at, "page: use a number, such as 1, or a range, such as 2-4 or 2-last, or first, last or all")
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
		r.addProblem(at, "page: the range %d-%d is empty: write the smaller number first", first, last)
	}
	return pageRange{first, last}
}

// region parses a region of a page.
func (r *mappingParser) region(at *yaml.Node) *pdf.Box {
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
			r.addProblem(at, "region: %s is missing: lengths are points (72 per inch) from the upper left corner of the page", key)
			continue
		}
		v, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil || math.IsInf(v, 0) || math.IsNaN(v) || v < 0 || i > 1 && v == 0 {
			r.addProblem(n, "region: %s must be a length in points, such as 72 for an inch", key)
		}
		sides[i] = v
	}
	return &pdf.Box{X: sides[0], Y: sides[1], Width: sides[2], Height: sides[3]}
}
