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
		t.Fatal("it was taken")
	}
	for _, want := range []string{
		`bad.yaml:1: "Invoice!" cannot be a mapping's name`,
		`bad.yaml:2: "titel" is not known here: use name, title`,
		`bad.yaml:3: "1st" cannot be a name in XML`,
		`bad.yaml:6: find: this is not a pattern: missing closing ]`,
		`bad.yaml:7: a is in 1st twice`,
		`bad.yaml:8: "colour" is not known here`,
		`bad.yaml:9: find and fixed cannot stand together`,
		`bad.yaml:10: attribute and each cannot stand together`,
		`bad.yaml:10: each: say true or false`,
		`bad.yaml:13: say what this makes`,
		`bad.yaml:13: elements: here belongs a list`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestEveryMistakeInAMappingIsSeen(t *testing.T) {
	rule := func(text string) string { return "name: own\nroot: r\nelements:\n  - " + text + "\n" }
	deep := "{element: x, fixed: y}"
	for range deepest + 1 {
		deep = "{element: x, elements: [" + deep + "]}"
	}
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty"},
		{"# nothing\n", "the file is empty"},
		{"a: [", "this is not YAML"},
		{"\x00", "this is not YAML"},
		{"- a\n", "here belong lines of the form key: value"},
		{"just text", "here belong lines of the form key: value"},
		{"{}", "name is missing"},
		{"name: own", "elements is missing"},
		{"name: text\nroot: r\nelements: [{element: a, fixed: b}]", "built-in"},
		{"name: ../../etc/passwd\nroot: r\nelements: [{element: a, fixed: b}]", "cannot be a mapping's name"},
		{"name: own\nroot: xmlStuff\nelements: [{element: a, fixed: b}]", "cannot be a name in XML"},
		{"name: own\nroot: a b\nelements: [{element: a, fixed: b}]", "cannot be a name in XML"},
		{"name: own\nroot: r\nnamespace: nowhere\nelements: [{element: a, fixed: b}]", "cannot be a namespace"},
		{"name: own\nroot: r\nnamespace: http://www.w3.org/2000/xmlns/\nelements: [{element: a, fixed: b}]", "cannot be a namespace"},
		{"name: own\nroot: r\nelements: [{element: a, fixed: b}]\n---\nname: other\n", "a file holds one mapping"},
		{"name: own\nname: own\nroot: r\nelements: [{element: a, fixed: b}]", "name is here twice"},
		{"name: &x own\nroot: *x\nelements: [{element: a, fixed: b}]", "anchors and aliases"},
		{"name: [own]\nroot: r\nelements: [{element: a, fixed: b}]", "name: here belongs a text"},
		{"name: own\nroot: r\nelements: a", "here belongs a list"},
		{"name: own\nroot: r\nelements: [a]", "here belong lines"},
		{rule(`{element: a}`), "nothing says where"},
		{rule(`{element: a, attribute: b, fixed: c}`), "say what this makes"},
		{rule(`{element: a, fixed: }`), "here belongs a text"},
		{rule(`{element: a, fixed: {b: c}}`), "here belongs a text"},
		{rule(`{element: a, about: colour}`), "does not tell its"},
		{rule(`{element: a, find: ''}`), "here belongs a text"},
		{rule(`{element: a, find: []}`), "here belongs a pattern"},
		{rule(`{element: a, find: 'b*'}`), "content with nothing"},
		{rule(`{element: a, find: '(?<!x)y'}`), "not a pattern"},
		{rule(`{element: a, find: '` + strings.Repeat("x", longest+1) + `'}`), "at most 2000 characters"},
		{rule(`{element: a, find: '(x{900}){900}'}`), "not a pattern"},
		{rule(`{element: a, find: 'b', in: word}`), "say one of row, line, page"},
		{rule(`{element: a, find: '(?P<b>c)', groups: text}`), "say one of elements, attributes"},
		{rule(`{element: a, find: '(?P<b>c)(d)'}`), "group without a name would be lost"},
		{rule(`{element: a, find: '(c)(d)'}`), "only one group without a name"},
		{rule(`{element: a, find: '(?P<xmlns>c)'}`), "cannot be a name in XML"},
		{rule(`{element: a, find: '(?P<b>c)', elements: [{element: b, fixed: d}]}`), "b is in a twice"},
		{rule(`{element: a, find: '(?P<b>c)', default: d}`), "holds others has no text"},
		{rule(`{attribute: a, find: '(?P<b>c)'}`), "an attribute has no parts"},
		{rule(`{element: a, fixed: b, in: line}`), "in belongs to find"},
		{rule(`{element: a, fixed: b, each: true}`), "each belongs to find"},
		{rule(`{element: a, fixed: b, page: 1}`), "page says nothing about fixed"},
		{rule(`{element: a, fixed: b, elements: [{element: c, fixed: d}]}`), "holds others has no text"},
		{rule(`{element: a, find: b, required: true, default: c}`), "cannot stand together"},
		{rule(`{element: a, find: b, required: 1}`), "say true or false"},
		{rule(`{element: a, find: b, each: true, default: c}`), "cannot stand together"},
		{rule(`{element: a, find: b, page: 0}`), "page: say a number"},
		{rule(`{element: a, find: b, page: 4-2}`), "holds no page"},
		{rule(`{element: a, find: b, page: [1]}`), "page: say a number"},
		{rule(`{element: a, region: 7}`), "here belong lines"},
		{rule(`{element: a, region: {x: 1, y: 2, width: 3}}`), "height is missing"},
		{rule(`{element: a, region: {x: 1, y: 2, width: 3, height: 0}}`), "is a length in points"},
		{rule(`{element: a, region: {x: 1, y: NaN, width: 3, height: 4}}`), "is a length in points"},
		{rule(`{element: a, region: {x: 1, y: 2, width: -3, height: 4}}`), "is a length in points"},
		{rule(`{element: a, find: b, elements: [{element: c, find: d, page: 1}]}`), "without pages and places"},
		{rule(`{element: a, find: b, elements: [{element: c, elements: [{element: d, region: {x: 1, y: 1, width: 1, height: 1}}]}]}`), "without pages and places"},
		{rule(deep), "levels may lie in each other"},
		{rule("{element: a, elements: [" + strings.Repeat("{element: b, fixed: c}, ", most+1) + "]}"), "at most 500"},
		{strings.Repeat("#", largestMapping+1), "at most 262144 bytes"},
	} {
		if _, err := parseMapping("own.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "own.yaml:") {
			t.Errorf("%.200s\nshould be refused with %q, and the answer is: %v", c.text, c.want, err)
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
		t.Fatal("it was taken")
	}
	for _, want := range []string{`b.yml: the name "own" is taken by a.yaml already`, "c.yaml:1: root is missing"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "readme") {
		t.Errorf("other files were looked at: %v", err)
	}
}

func TestAGatewayThatCannotWorkDoesNotStart(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Mappings: filepath.Join(t.TempDir(), "none")}, "the folder with mappings cannot be read"},
		{Config{Reader: "acrobat"}, "there is no such reader"},
		{Config{Temp: filepath.Join(t.TempDir(), "none")}, "cannot be listed"},
		{Config{Slots: -1}, "cannot be negative"},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s should be refused with %q, and the answer is: %v", fmt.Sprintf("%+v", c.cfg), c.want, err)
		}
	}
}

// FuzzMappingsAreTakenWholeOrRefused: no text makes it fall, and what it takes has a schema.
func FuzzMappingsAreTakenWholeOrRefused(f *testing.F) {
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
