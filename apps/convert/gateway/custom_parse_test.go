package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestABadMappingIsRefusedWithEveryProblemAndItsLine(t *testing.T) {
	_, err := parseMapping("bad.yaml", []byte(`name: Invoice!
titel: x
root: 1st
elements:
  - element: a
    find: '(['
  - element: a
    colour: red
  - attribute: b
    each: yes
    fixed: x
    find: y
  - elements: []
`))
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{
		`bad.yaml:1: "Invoice!" is not a valid name`,
		`bad.yaml:2: unknown key "titel": use name, title`,
		`bad.yaml:3: "1st" is not a valid XML name`,
		`bad.yaml:6: find: not a valid regular expression: missing closing ]`,
		`bad.yaml:7: a occurs twice in 1st`,
		`bad.yaml:8: unknown key "colour"`,
		`bad.yaml:9: find and fixed exclude each other`,
		`bad.yaml:10: attribute and each exclude each other`,
		`bad.yaml:10: each: use true or false`,
		`bad.yaml:13: add element: NAME or attribute: NAME`,
		`bad.yaml:13: elements: expected a list`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestEveryMistakeInAMappingIsReported(t *testing.T) {
	rule := func(text string) string { return "name: own\nroot: r\nelements:\n  - " + text + "\n" }
	deep := "{element: x, fixed: y}"
	for range maxDepth + 1 {
		deep = "{element: x, elements: [" + deep + "]}"
	}
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty"},
		{"# nothing\n", "the file is empty"},
		{"a: [", "not valid YAML"},
		{"\x00", "not valid YAML"},
		{"- a\n", "expected lines of the form key: value"},
		{"just text", "expected lines of the form key: value"},
		{"{}", "name is missing"},
		{"name: own", "elements is missing"},
		{"name: text\nroot: r\nelements: [{element: a, fixed: b}]", "built-in"},
		{"name: ../../etc/passwd\nroot: r\nelements: [{element: a, fixed: b}]", "is not a valid name"},
		{"name: own\nroot: xmlStuff\nelements: [{element: a, fixed: b}]", "is not a valid XML name"},
		{"name: own\nroot: a b\nelements: [{element: a, fixed: b}]", "is not a valid XML name"},
		{"name: own\nroot: r\nnamespace: nowhere\nelements: [{element: a, fixed: b}]", "is not a valid namespace"},
		{"name: own\nroot: r\nnamespace: http://www.w3.org/2000/xmlns/\nelements: [{element: a, fixed: b}]", "is not a valid namespace"},
		{"name: own\nroot: r\nelements: [{element: a, fixed: b}]\n---\nname: other\n", "a file contains one mapping"},
		{"name: own\nname: own\nroot: r\nelements: [{element: a, fixed: b}]", "name occurs twice"},
		{"name: &x own\nroot: *x\nelements: [{element: a, fixed: b}]", "anchors and aliases"},
		{"name: [own]\nroot: r\nelements: [{element: a, fixed: b}]", "name: expected a text"},
		{"name: own\nroot: r\nelements: a", "expected a list"},
		{"name: own\nroot: r\nelements: [a]", "expected lines"},
		{rule(`{element: a}`), "the rule has no value"},
		{rule(`{element: a, attribute: b, fixed: c}`), "add element: NAME or attribute: NAME"},
		{rule(`{element: a, fixed: }`), "expected a text"},
		{rule(`{element: a, fixed: {b: c}}`), "expected a text"},
		{rule(`{element: a, about: colour}`), "unknown metadata"},
		{rule(`{element: a, find: ''}`), "expected a text"},
		{rule(`{element: a, find: []}`), "expected a pattern"},
		{rule(`{element: a, find: 'b*'}`), "matches an empty text"},
		{rule(`{element: a, find: '(?<!x)y'}`), "not a valid regular expression"},
		{rule(`{element: a, find: '` + strings.Repeat("x", maxPattern+1) + `'}`), "longer than 2000 characters"},
		{rule(`{element: a, find: '(x{900}){900}'}`), "not a valid regular expression"},
		{rule(`{element: a, find: 'b', in: word}`), "use one of row, line, page"},
		{rule(`{element: a, find: '(?P<b>c)', groups: text}`), "use one of elements, attributes"},
		{rule(`{element: a, find: '(?P<b>c)(d)'}`), "unnamed group would be lost"},
		{rule(`{element: a, find: '(c)(d)'}`), "only one unnamed group"},
		{rule(`{element: a, find: '(?P<xmlns>c)'}`), "is not a valid XML name"},
		{rule(`{element: a, find: '(?P<b>c)', elements: [{element: b, fixed: d}]}`), "b occurs twice in a"},
		{rule(`{element: a, find: '(?P<b>c)', default: d}`), "with child elements has no text"},
		{rule(`{attribute: a, find: '(?P<b>c)'}`), "an attribute has only one value"},
		{rule(`{element: a, fixed: b, in: line}`), "in needs find"},
		{rule(`{element: a, fixed: b, each: true}`), "each needs find"},
		{rule(`{element: a, fixed: b, page: 1}`), "page has no effect on fixed"},
		{rule(`{element: a, fixed: b, elements: [{element: c, fixed: d}]}`), "with child elements has no text"},
		{rule(`{element: a, find: b, required: true, default: c}`), "exclude each other"},
		{rule(`{element: a, find: b, required: 1}`), "use true or false"},
		{rule(`{element: a, find: b, each: true, default: c}`), "exclude each other"},
		{rule(`{element: a, find: b, page: 0}`), "page: use a number"},
		{rule(`{element: a, find: b, page: 4-2}`), "is empty"},
		{rule(`{element: a, find: b, page: [1]}`), "page: use a number"},
		{rule(`{element: a, region: 7}`), "expected lines"},
		{rule(`{element: a, region: {x: 1, y: 2, width: 3}}`), "height is missing"},
		{rule(`{element: a, region: {x: 1, y: 2, width: 3, height: 0}}`), "must be a length in points"},
		{rule(`{element: a, region: {x: 1, y: NaN, width: 3, height: 4}}`), "must be a length in points"},
		{rule(`{element: a, region: {x: 1, y: 2, width: -3, height: 4}}`), "must be a length in points"},
		{rule(`{element: a, find: b, elements: [{element: c, find: d, page: 1}]}`), "has no pages and positions"},
		{rule(`{element: a, find: b, elements: [{element: c, elements: [{element: d, region: {x: 1, y: 1, width: 1, height: 1}}]}]}`), "has no pages and positions"},
		{rule(deep), "nested too deep"},
		{rule("{element: a, elements: [" + strings.Repeat("{element: b, fixed: c}, ", maxRules+1) + "]}"), "the limit is 500"},
		{strings.Repeat("#", maxMappingBytes+1), "the limit of 262144 bytes"},
	} {
		if _, err := parseMapping("own.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "own.yaml:") {
			t.Errorf("%.200s\nshould be refused with %q, and the error is: %v", c.text, c.want, err)
		}
	}
}

func TestAFolderWithABadMappingIsRefusedWhole(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml":       "name: own\nroot: r\nelements: [{element: a, fixed: b}]",
		"b.yml":        "name: own\nroot: r\nelements: [{element: a, fixed: b}]",
		"c.yaml":       "name: bad",
		".hidden.yaml": "bad",
		"readme.txt":   "bad",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := New(Config{Mappings: folder, Temp: t.TempDir()})
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{`b.yml: a.yaml already has the name "own"`, "c.yaml:1: root is missing"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "readme") {
		t.Errorf("other files were read: %v", err)
	}
}

func TestAGatewayThatCannotWorkDoesNotStart(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Mappings: filepath.Join(t.TempDir(), "none")}, "cannot read the folder with mappings"},
		{Config{Reader: "acrobat"}, "there is no such reader"},
		{Config{Temp: filepath.Join(t.TempDir(), "none")}, "cannot list the folder"},
		{Config{Slots: -1}, "must not be negative"},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s should be refused with %q, and the error is: %v", fmt.Sprintf("%+v", c.cfg), c.want, err)
		}
	}
}

// FuzzMappingsAreParsedOrRefused: no text makes it fall, and what it takes has a schema.
func FuzzMappingsAreParsedOrRefused(f *testing.F) {
	invoice, err := os.ReadFile(filepath.Join("testdata", "invoice.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(invoice))
	f.Add("name: own\nroot: r\nelements: [{element: a, find: [x, '(?P<y>z)'], groups: attributes}]")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMapping("own.yaml", []byte(text))
		if err != nil {
			return
		}
		if len(m.schema) == 0 || m.Name == "" {
			t.Error("it was taken, and is not whole")
		}
		_ = m.writeTo(new(strings.Builder), letter())
	})
}
