package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

// A description is the OpenAPI document of the service, as clients read it.
type description struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Responses   responses
		RequestBody *struct {
			Content map[string]struct{ Schema map[string]any }
		}
	}
	Components struct{ Schemas map[string]map[string]any }
}

// responses are the answers of an operation, by status.
type responses map[string]struct {
	Content map[string]struct{ Schema map[string]any }
}

// A request is one that a test sends.
type request struct {
	method, path, target, key string
	body                      any
}

// answersAs sends a request and compares the answer with its description.
func (s *scene) answersAs(d *description, described responses, r request) {
	s.Helper()
	a := s.callAs(r.key, strings.ToUpper(r.method), r.target, r.body)
	one, ok := described[fmt.Sprint(a.Status)]
	if !ok && !(a.Status == 422 && strings.HasSuffix(r.path, "/result")) { // a failed shot answers with the status of its code
		s.Errorf("%s %s answers %d, which is not described: %s", r.method, r.target, a.Status, a.Body)
		return
	}
	content, isJSON := one.Content["application/json"]
	if !isJSON || content.Schema["type"] == "object" {
		return
	}
	var value any
	a.into(s, &value)
	for _, bad := range d.check("answer", value, content.Schema) {
		s.Errorf("%s %s %d: %s", r.method, r.target, a.Status, bad)
	}
}

// check compares a JSON value with a schema, and returns what does not fit.
func (d *description) check(at string, value any, schema map[string]any) []string {
	if ref, ok := schema["$ref"].(string); ok {
		target, ok := d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
		if !ok {
			return []string{at + ": " + ref + " does not exist"}
		}
		return d.check(at, value, target)
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		var all []string
		for _, one := range choices {
			bad := d.check(at, value, one.(map[string]any))
			if len(bad) == 0 {
				return nil
			}
			all = append(all, bad...)
		}
		return all
	}
	if len(schema) == 0 {
		return nil
	}
	types, ok := schema["type"].([]any)
	if !ok {
		types = []any{schema["type"]}
	}
	switch v := value.(type) {
	case nil:
		return misfit(at, "null", types)
	case string:
		return misfit(at, "string", types)
	case bool:
		return misfit(at, "boolean", types)
	case float64:
		if v == float64(int64(v)) && slices.Contains(types, any("integer")) {
			return nil
		}
		return misfit(at, "number", types)
	case []any:
		bad := misfit(at, "array", types)
		for i, one := range v {
			bad = append(bad, d.check(fmt.Sprintf("%s[%d]", at, i), one, schema["items"].(map[string]any))...)
		}
		return bad
	case map[string]any:
		return append(misfit(at, "object", types), d.checkObject(at, v, schema)...)
	}
	return []string{at + ": unknown"}
}

func (d *description) checkObject(at string, value, schema map[string]any) (bad []string) {
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range value {
		if p, ok := properties[name].(map[string]any); ok {
			bad = append(bad, d.check(at+"."+name, v, p)...)
		} else if more, ok := schema["additionalProperties"].(map[string]any); ok {
			bad = append(bad, d.check(at+"."+name, v, more)...)
		} else {
			bad = append(bad, at+"."+name+" is not described")
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := value[name.(string)]; !ok {
			bad = append(bad, at+"."+name.(string)+" is missing")
		}
	}
	return bad
}

func misfit(at, is string, types []any) []string {
	if slices.Contains(types, any(is)) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s instead of %v", at, is, types)}
}

func TestEveryAnswerIsAsTheDescriptionSays(t *testing.T) {
	s := newScene(t)
	var d description
	s.callAs("", "GET", "/api/v1/openapi.json", nil).into(t, &d)
	if d.OpenAPI != "3.1.0" || len(d.Paths) < 20 {
		t.Fatalf("%s with %d paths", d.OpenAPI, len(d.Paths))
	}
	s.works()
	done, failed := s.submit("/ok"), s.submit("/status/404")
	s.ended(done.ID, service.Completed)
	s.ended(failed.ID, service.Failed)
	ids := map[string][]string{"/screenshots/{id}": {done.ID.String(), failed.ID.String(), holdfast.NewID().String(), "x"}, "/results/{id}": {done.ID.String()}, "/admin/organisations/{id}": {s.owner, "x"}}
	bodies := map[string][]any{
		"/screenshots": {map[string]any{"url": s.origin.URL + "/hold"}, map[string]any{}, "{"}, "/screenshots/bulk": {map[string]any{"requests": []any{map[string]any{"html": "<p>x"}}}, map[string]any{}},
		"/screenshots/{id}/retry": {map[string]any{"requestedBy": "me"}, nil}, "/budgets": {map[string]any{"dailyRetryLimit": 100}, map[string]any{"dailyRetryLimit": -1}},
		"/admin/retry-scheduler/pause": {map[string]any{"duration": "1m"}, map[string]any{"duration": "x"}}, "/admin/organisations/{id}/credits": {map[string]any{"amount": 5}, map[string]any{}},
		"/admin/organisations/{id}/plan": {map[string]any{"retryWithin": "1m", "compensation": 1}, map[string]any{"retryWithin": "x"}}, "/webhooks/retry": {map[string]any{"jobId": "x"}, "{"},
	}
	seen := map[string]bool{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if seen[op.OperationID] || op.OperationID == "" {
				t.Errorf("%s %s: the id %q is not its own", method, path, op.OperationID)
			}
			seen[op.OperationID] = true
			if path == "/api/v1/events" {
				continue // it does not end
			}
			given := bodies[strings.TrimPrefix(path, "/api/v1")]
			if method == "get" || len(given) == 0 {
				given = []any{nil}
			}
			for _, target := range targets(path, ids) {
				for _, body := range given {
					s.answersAs(&d, op.Responses, request{method, path, target, s.key, body})
					s.answersAs(&d, op.Responses, request{method, path, target, "", body})
				}
			}
		}
	}
	s.origin.release()
}

// targets returns a path with each id that it may have.
func targets(path string, ids map[string][]string) (list []string) {
	for prefix, values := range ids {
		if strings.HasPrefix(path, "/api/v1"+prefix) {
			for _, id := range values {
				list = append(list, strings.Replace(path, "{id}", id, 1))
			}
			return list
		}
	}
	return []string{path}
}
