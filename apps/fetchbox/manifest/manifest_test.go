package manifest_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
)

func TestAGoodManifestIsRead(t *testing.T) {
	m, problems, err := manifest.ReadJSON(strings.NewReader(`{"name": "logos", "proxy": "eu", "handler": "image", "download_retry_limit": 7, "resources": [
		{"url": "https://example.com/a.png", "key": "logos/a.png", "headers": {"Accept": "image/*"}, "sha256": "`+strings.Repeat("AB", 32)+`", "size": 0, "type": "image/png"},
		{"url": "http://example.com:8080/b", "proxy": "us", "meta": {"source": "b"}, "replace": true}]}`), manifest.Checker{})
	if err != nil || problems.Count > 0 {
		t.Fatalf("%+v %v", problems, err)
	}
	if m.Name != "logos" || m.DownloadRetryLimit != 7 || len(m.Resources) != 2 {
		t.Fatalf("%+v", m)
	}
	a, b := m.Resources[0], m.Resources[1]
	if a.Proxy != "eu" || a.Handler != "image" || a.SHA256 != strings.Repeat("ab", 32) || *a.Size != 0 || b.Proxy != "us" || b.Handler != "image" || b.Meta["source"] != "b" || !b.Replace {
		t.Errorf("%+v %+v", a, b)
	}
	lines, problems, err := manifest.ReadLines(strings.NewReader("{\"url\":\"https://example.com/a\"}\n\n {\"url\":\"https://example.com/b\"}"), manifest.Defaults{Proxy: "eu"}, manifest.Checker{})
	if err != nil || problems.Count > 0 || len(lines.Resources) != 2 || lines.Resources[1].Proxy != "eu" {
		t.Errorf("%+v %+v %v", lines, problems, err)
	}
}

// F1: validation errors name every bad line.
func TestEveryBadLineIsNamed(t *testing.T) {
	check := manifest.Checker{Handler: func(name string) error {
		if name != "image" {
			return fmt.Errorf("there is no handler %s", name)
		}
		return nil
	}}
	lines := []struct{ line, field, code string }{
		{`{"url": "https://example.com/good", "handler": "image"}`, "", ""},
		{`{"key": "x"}`, "url", "VALIDATION_MISSING_FIELD"},
		{`{"url": "ftp://example.com/"}`, "url", "VALIDATION_INVALID_URL"},
		{`{"url": "https://"}`, "url", "VALIDATION_INVALID_URL"},
		{`{"url": "https://example.com/", "key": "../a"}`, "key", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "key": "Upper"}`, "key", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "key": "same"}`, "", ""},
		{`{"url": "https://example.com/", "key": "same"}`, "key", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "sha256": "12"}`, "sha256", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "size": -1}`, "size", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "size": "big"}`, "size", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "type": "png"}`, "type", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "headers": {"A B": "x"}}`, "headers", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "headers": {"A": "x\ny"}}`, "headers", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "handler": "nosuch"}`, "handler", "VALIDATION_UNKNOWN_NAME"},
		{`{"url": "https://example.com/", "proxy": "a b"}`, "proxy", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "meta": {"a b": "c"}}`, "meta", "VALIDATION_INVALID_FIELD"},
		{`{"url": "https://example.com/", "uurl": 1}`, "uurl", "VALIDATION_INVALID_FIELD"},
		{`"https://example.com/"`, "", "VALIDATION_INVALID_BODY"},
	}
	var asLines, asArray []string
	for _, l := range lines {
		asLines = append(asLines, l.line)
		asArray = append(asArray, l.line)
	}
	_, fromLines, err := manifest.ReadLines(strings.NewReader(strings.Join(asLines, "\n")), manifest.Defaults{}, check)
	if err != nil {
		t.Fatal(err)
	}
	_, fromJSON, err := manifest.ReadJSON(strings.NewReader(`{"resources": [`+strings.Join(asArray, ",\n")+`]}`), check)
	if err != nil {
		t.Fatal(err)
	}
	for how, problems := range map[string]*manifest.Problems{"NDJSON": fromLines, "JSON": fromJSON} {
		found := map[int]manifest.Problem{}
		for _, p := range problems.List {
			found[p.Line] = p
		}
		for i, l := range lines {
			if p := found[i+1]; p.Field != l.field || p.Code != l.code {
				t.Errorf("%s: %s\n has the problem %+v, want %s %s", how, l.line, p, l.field, l.code)
			}
			delete(found, i+1)
		}
		if len(found) > 0 {
			t.Errorf("%s: problems of other lines: %v", how, found)
		}
	}
}

func TestAManifestThatIsNoneIsRefused(t *testing.T) {
	for text, code := range map[string]string{
		``: "VALIDATION_INVALID_BODY", `[]`: "VALIDATION_INVALID_BODY", `{`: "VALIDATION_INVALID_BODY", `{"resources": [}`: "VALIDATION_INVALID_BODY",
		`{}`: "VALIDATION_MISSING_FIELD", `{"resources": []}`: "VALIDATION_MISSING_FIELD", `{"resources": {}}`: "VALIDATION_INVALID_BODY",
		`{"resources": [{"url": "https://example.com"}], "nosuch": 1}`: "VALIDATION_INVALID_FIELD", `{"resources": [{"url": "https://example.com"}]} {}`: "VALIDATION_INVALID_BODY",
		`{"resources": [{"url": "https://example.com"}], "download_retry_limit": -1}`: "VALIDATION_INVALID_FIELD",
	} {
		_, problems, err := manifest.ReadJSON(strings.NewReader(text), manifest.Checker{})
		if err != nil || problems.Count != 1 || problems.List[0].Code != code || problems.List[0].Line != 0 {
			t.Errorf("%s: %+v, %v, want %s", text, problems, err, code)
		}
	}
}

func TestSizesAreLimited(t *testing.T) {
	one := "{\"url\":\"https://example.com/a\"}\n"
	m, problems, err := manifest.ReadLines(strings.NewReader(strings.Repeat(one, manifest.MaxResources)), manifest.Defaults{}, manifest.Checker{})
	if err != nil || problems.Count > 0 || len(m.Resources) != manifest.MaxResources {
		t.Errorf("the most: %d, %+v, %v", len(m.Resources), problems, err)
	}
	_, problems, err = manifest.ReadLines(strings.NewReader(strings.Repeat(one, manifest.MaxResources+5)), manifest.Defaults{}, manifest.Checker{})
	if err != nil || problems.Count != 1 || problems.List[0].Code != "VALIDATION_TOO_LARGE" || problems.List[0].Line != manifest.MaxResources+1 {
		t.Errorf("too many: %+v, %v", problems, err)
	}
	long := `{"url":"https://example.com/a","meta":{"a":"` + strings.Repeat("x", manifest.MaxLine) + `"}}` + "\n"
	m, problems, err = manifest.ReadLines(strings.NewReader(one+long+one), manifest.Defaults{}, manifest.Checker{})
	if err != nil || problems.Count != 1 || problems.List[0].Line != 2 || len(m.Resources) != 2 {
		t.Errorf("a long line: %+v, %d resources, %v", problems, len(m.Resources), err)
	}
	_, problems, err = manifest.ReadLines(io.LimitReader(endless{}, manifest.MaxBytes+1000), manifest.Defaults{}, manifest.Checker{})
	if err != nil || problems.Count == 0 || problems.List[len(problems.List)-1].Code != "VALIDATION_TOO_LARGE" {
		t.Errorf("too many bytes: %d, %v", problems.Count, err)
	}
	many := strings.Repeat("{}\n", 5000)
	if _, problems, err = manifest.ReadLines(strings.NewReader(many), manifest.Defaults{}, manifest.Checker{}); err != nil || problems.Count != 5000 || len(problems.List) != manifest.MaxProblems {
		t.Errorf("many problems: %d named of %d, %v", len(problems.List), problems.Count, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestAnErrorOfTheConnectionIsNoProblemOfTheManifest(t *testing.T) {
	broken := errors.New("broken")
	for _, text := range []string{"", `{"resources": [{"url": "https://example.com/a"}, `} {
		if _, _, err := manifest.ReadJSON(io.MultiReader(strings.NewReader(text), failing{broken}), manifest.Checker{}); !errors.Is(err, broken) {
			t.Errorf("JSON after %q: %v", text, err)
		}
		if _, _, err := manifest.ReadLines(io.MultiReader(strings.NewReader(text), failing{broken}), manifest.Defaults{}, manifest.Checker{}); !errors.Is(err, broken) {
			t.Errorf("lines after %q: %v", text, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
