package openapi

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// The parts of the document that the rules look at.
type (
	ruled struct {
		Info struct {
			License struct{ Name, Identifier string }
		}
		Servers    []struct{ URL string }
		Security   []map[string][]string
		Tags       []struct{ Name string }
		Paths      map[string]map[string]ruledOperation
		Components map[string]map[string]json.RawMessage
	}
	ruledOperation struct {
		OperationID string `json:"operationId"`
		Summary     string
		Tags        []string
		Parameters  []struct {
			Ref, Name, Description string
		}
		RequestBody *struct{ Content map[string]ruledBody }
		Responses   map[string]struct {
			Content map[string]ruledBody
		}
	}
	ruledBody struct{ Example json.RawMessage }
)

// TestTheDocumentKeepsTheRulesOfLinters has the rules that Redocly recommends, and some more. CONTRIBUTING.md has the command that runs Redocly itself.
func TestTheDocumentKeepsTheRulesOfLinters(t *testing.T) {
	_, made, _, _ := documented(t)
	text, err := made.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var doc ruled
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Info.License.Name == "" || doc.Info.License.Identifier == "" || len(doc.Servers) == 0 || len(doc.Security) == 0 || strings.Contains(string(text), "patternDescription") {
		t.Error("it lacks a license, a server or security, or has patternDescription, which is no member of a schema")
	}
	tags, ids, paths := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, tag := range doc.Tags {
		tags[tag.Name] = true
	}
	for path, operations := range doc.Paths {
		bare := regexp.MustCompile(`{[^}]*}`).ReplaceAllString(path, "{}")
		if other := paths[bare]; other != "" || strings.HasSuffix(path, "/") {
			t.Errorf("the path %s is ambiguous: %s", path, other)
		}
		paths[bare] = path
		for _, o := range operations {
			if ids[o.OperationID] || !regexp.MustCompile(`^[a-z-]+$`).MatchString(o.OperationID) {
				t.Errorf("%s: the operation id %q is missing, taken or not fit for a URL", path, o.OperationID)
			}
			ids[o.OperationID] = true
			o.check(t, tags)
		}
	}
	for section, all := range doc.Components {
		for name := range all {
			if section != "securitySchemes" && !strings.Contains(string(text), `"#/components/`+section+"/"+name+`"`) {
				t.Errorf("nothing refers to #/components/%s/%s", section, name)
			}
		}
	}
}

func (o ruledOperation) check(t *testing.T, tags map[string]bool) {
	t.Helper()
	if o.Summary == "" || len(o.Tags) != 1 || !tags[o.Tags[0]] {
		t.Errorf("%s lacks a summary, or its tag %v is not declared", o.OperationID, o.Tags)
	}
	for _, p := range o.Parameters {
		if p.Ref == "" && p.Name != "" && p.Description == "" {
			t.Errorf("%s: the parameter %s has no description", o.OperationID, p.Name)
		}
	}
	success, refusal := false, false
	for status, r := range o.Responses {
		success, refusal = success || status[0] == '2', refusal || status[0] == '4'
		if body, is := r.Content["application/json"]; status[0] == '2' && is && len(body.Example) == 0 {
			t.Errorf("%s has no example of its answer %s", o.OperationID, status)
		}
	}
	if !success || !refusal {
		t.Errorf("%s lacks an answer of success or one of 4xx", o.OperationID)
	}
	if o.RequestBody != nil && len(o.RequestBody.Content["application/json"].Example) == 0 {
		t.Errorf("%s has no example of its request", o.OperationID)
	}
}
