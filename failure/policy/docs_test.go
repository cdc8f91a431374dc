package policy

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A path is where an object stands in a file, such as kinds.NAME.limit: NAME and CODE stand for any name.
const (
	anyName = "NAME"
	anyCode = "CODE"
	noKey   = "qqqqqqqq" // known nowhere
)

// named are the objects whose keys are names.
var named = map[string]string{
	"kinds": anyName, "owners": anyName, "dependencies": anyName, "queues": anyName, "codes": anyCode, "kinds.NAME.codes": anyCode, "owners.NAME.codes": anyCode,
}

var knownKeys = regexp.MustCompile(`is not known; use (.*)$`)

// written returns a file in which an object contains text.
func written(path, text string) string {
	if path == "" {
		return "{" + text + "}"
	}
	words := strings.Split(path, ".")
	for _, word := range slices.Backward(words) {
		word = map[string]string{anyName: "x", anyCode: "GW_5XX"}[word] + strings.NewReplacer(anyName, "", anyCode, "").Replace(word)
		text = word + ": {" + text + "}"
	}
	return "{" + text + "}"
}

// keysAt asks the parser which keys an object may have, and the objects in it. A value that is no object has none.
func keysAt(t *testing.T, path string) (all []string) {
	t.Helper()
	if one, is := named[path]; is {
		return keysAt(t, path+"."+one)
	}
	_, _, err := ParseLenient([]byte(written(path, noKey+": 1")), nil)
	var mistakes Problems
	if !errors.As(err, &mistakes) {
		t.Fatalf("the parser accepts the key %s in %s", noKey, path)
	}
	for _, m := range mistakes {
		words := knownKeys.FindStringSubmatch(m.Text)
		if words == nil || !strings.Contains(m.Text, noKey) {
			continue
		}
		for _, key := range strings.Split(strings.Replace(words[1], " or ", ", ", 1), ", ") {
			at := strings.TrimPrefix(path+"."+key, ".")
			all = append(append(all, at), keysAt(t, at)...)
		}
	}
	return all
}

var (
	keyTable = regexp.MustCompile(`(?m)^Keys of (.*):\n\n\|.*\n\|.*\n((?:\|.*\n)+)`)
	quoted   = regexp.MustCompile("`([^`]+)`")
	keyRow   = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|.*\\| `([^`]+)` \\|$")
)

// A row is a key on the page, with its example.
type row struct{ object, key, example string }

// rowsOf returns the rows of the tables of docs/policy.md. A table of every object of a name stands for all of them.
func rowsOf(page string, parser []string) (rows []row) {
	for _, table := range keyTable.FindAllStringSubmatch(page, -1) {
		var objects []string
		for _, name := range quoted.FindAllStringSubmatch(table[1], -1) {
			if !strings.HasPrefix(table[1], "every") {
				objects = append(objects, name[1])
				continue
			}
			for _, path := range parser {
				if strings.HasSuffix(path, "."+name[1]) {
					objects = append(objects, path)
				}
			}
		}
		if table[1] == "the file" {
			objects = []string{""}
		}
		for _, object := range objects {
			for _, r := range keyRow.FindAllStringSubmatch(table[2], -1) {
				rows = append(rows, row{object, r[1], r[2]})
			}
		}
	}
	return rows
}

func TestThePageListsTheKeysOfTheParser(t *testing.T) {
	text, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	parser := keysAt(t, "")
	rows := rowsOf(string(text), parser)
	var page []string
	for _, r := range rows {
		page = append(page, strings.TrimPrefix(r.object+"."+r.key, "."))
	}
	for _, key := range parser {
		if !slices.Contains(page, key) {
			t.Errorf("docs/policy.md lacks the key %s", key)
		}
	}
	for _, key := range page {
		if !slices.Contains(parser, key) {
			t.Errorf("docs/policy.md lists the key %s, and the parser does not know it", key)
		}
	}
	if len(parser) < 100 {
		t.Errorf("only %d keys were found", len(parser))
	}
}

func TestTheExamplesOfThePageAreAccepted(t *testing.T) {
	text, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rowsOf(string(text), keysAt(t, "")) {
		if !strings.Contains(r.example, r.key+":") {
			t.Errorf("the example of %s.%s does not show it: %s", r.object, r.key, r.example)
		}
		if _, err := Parse([]byte(written(r.object, r.example))); err != nil {
			t.Errorf("the example of %s.%s: %s: %v", r.object, r.key, r.example, err)
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

func TestThePoliciesOnPagesAreAccepted(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			if section, _, _ := strings.Cut(block[1], ":"); section != "defaults" && !slices.Contains(sectionNames, section) && section != "codes" {
				continue
			}
			seen++
			if _, err := Parse([]byte(block[1])); err != nil {
				t.Errorf("%s: %v\n%s", page, err, block[1])
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d policies were found", seen)
	}
}
