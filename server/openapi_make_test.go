package server

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/apikey"
)

const schemas = "#/components/schemas/"

// A writer writes the OpenAPI document from the routes, the types that travel, and what is said about them in the code.
type writer struct {
	doc      *huma.OpenAPI
	words    map[string]string // what the code says, by type and member
	registry huma.Registry
	sent     []*huma.Schema           // what clients send: there, unknown members are refused
	told     []*huma.Schema           // what they are told: there, a newer server may say more
	shared   map[string][]*huma.Param // parameters of types that several requests may embed, by type and name
}

// openapi makes the document of all that a server has mounted.
func openapi(t *testing.T, s *Server) *huma.OpenAPI {
	t.Helper()
	w := newWriter(wordsOf(t))
	for _, route := range s.routes {
		w.operation(route)
	}
	return w.finish()
}

func newWriter(words map[string]string) *writer {
	registry := huma.NewMapRegistry(schemas, namer())
	for from, to := range aliases() {
		registry.RegisterTypeAlias(from, to)
	}
	for from, to := range api.Forms() {
		registry.RegisterTypeAlias(from, to)
	}
	w := &writer{registry: registry, words: words, shared: map[string][]*huma.Param{}, doc: &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Holdfast", Version: "1", Description: overview,
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers:  []*huma.Server{{URL: "http://127.0.0.1:4747", Description: "a server on one's own machine"}},
		Security: []map[string][]string{{"key": {}}},
		Components: &huma.Components{
			Schemas: registry,
			Headers: headers(),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key": {Type: "http", Scheme: "bearer", Description: "An API key, such as hf_<id>_<secret>_<check>. An operator makes them with 'holdfast keys create' or POST /v1/keys. One may be bound to an owner: it is for what is the owner's, and everything else is closed to it or does not exist. A server on one's own machine may be open: then none is needed."},
			},
		},
	}}
	problem := w.schema(reflect.TypeFor[api.Problem](), "Problem")
	w.doc.Components.Responses = map[string]*huma.Response{"Problem": {
		Description: "what went wrong, and what to do about it (RFC 9457)",
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem, Example: example("problem")}},
	}}
	w.told = append(w.told, problem)
	return w
}

// described is the type that stands in the document for another.
func described(t reflect.Type) reflect.Type {
	if other, ok := reflect.Zero(t).Interface().(interface{ Described() reflect.Type }); ok {
		return other.Described()
	}
	return t
}

func (w *writer) schema(t reflect.Type, hint string) *huma.Schema {
	t = described(t)
	if t.Kind() == reflect.Struct && t.NumField() == 0 {
		return &huma.Schema{Type: huma.TypeObject}
	}
	return w.registry.Schema(t, true, hint)
}

// operation writes about one route.
func (w *writer) operation(m mounted) {
	o := &huma.Operation{
		OperationID: m.name, Method: m.method, Path: api.Prefix + m.path, Tags: []string{m.tag},
		Responses: map[string]*huma.Response{"default": {Ref: "#/components/responses/Problem"}},
	}
	o.Summary, o.Description = wordsOn(m)
	answer := &huma.Response{Description: http.StatusText(m.status)}
	if m.status != http.StatusNoContent {
		body := w.schema(m.answer(), m.name+"Out")
		answer.Content = map[string]*huma.MediaType{"application/json": {Schema: body, Example: example(m.name + " out")}}
		w.told = append(w.told, body)
		answer.Headers = headersOf(m)
	}
	o.Responses[strconv.Itoa(m.status)] = answer
	for _, f := range reflect.VisibleFields(m.request()) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		if f.Name == "Body" {
			body := w.schema(f.Type, m.name+"In")
			w.sent = append(w.sent, body)
			o.RequestBody = &huma.RequestBody{Required: requires(described(f.Type)), Content: map[string]*huma.MediaType{"application/json": {Schema: body, Example: example(m.name + " in")}}}
			continue
		}
		for _, where := range []string{"path", "query", "header"} {
			if name, ok := f.Tag.Lookup(where); ok {
				o.Parameters = append(o.Parameters, w.param(m, f, where, name))
			}
		}
	}
	w.otherForms(m, o)
	w.doc.AddOperation(o)
}

func (m mounted) request() reflect.Type { return reflect.TypeOf(m.in).Elem() }
func (m mounted) answer() reflect.Type  { return reflect.TypeOf(m.out).Elem() }

// param writes about a parameter, and remembers of which type it is a member.
func (w *writer) param(m mounted, f reflect.StructField, where, name string) *huma.Param {
	schema := huma.SchemaFromField(w.registry, f, name)
	told := &huma.Param{Name: name, In: where, Required: where == "path" || f.Tag.Get("required") == "true", Description: schema.Description, Schema: schema}
	schema.Description, schema.Nullable = "", false
	of := declarer(m.request(), f).Name() + "." + name
	w.shared[of] = append(w.shared[of], told)
	return told
}

// share writes a parameter that several routes have once.
func (w *writer) share() {
	w.doc.Components.Parameters = map[string]*huma.Param{}
	for name, all := range w.shared {
		if len(all) == 1 {
			continue
		}
		one := *all[0]
		w.doc.Components.Parameters[name] = &one
		for _, p := range all {
			*p = huma.Param{Ref: "#/components/parameters/" + name}
		}
	}
}

// headers are those of answers that say something.
func headers() map[string]*huma.Param {
	all := map[string]*huma.Param{}
	for name, about := range map[string]string{
		"X-Request-Id": "the id of this request, as stories and logs know it",
		"ETag":         "tells whether the job is still as somebody saw it; for If-Match",
		"Link":         "leads to the next page (rel=next); none on the last",
		"Location":     "where to look for it",
	} {
		all[name] = &huma.Param{Description: about, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return all
}

// headersOf are those that a route's answer has.
func headersOf(m mounted) map[string]*huma.Param {
	out, has := reflect.Zero(m.answer()).Interface(), []string{"X-Request-Id"}
	if _, ok := out.(interface{ Digest() string }); ok {
		has = append(has, "ETag")
	}
	if _, ok := out.(api.Pager); ok {
		has = append(has, "Link")
	}
	if _, ok := out.(api.Announcer); ok {
		has = append(has, "Location")
	}
	headers := map[string]*huma.Param{}
	for _, name := range has {
		headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return headers
}

// requires reports whether a body must be sent: one of which everything may be left out may be left out itself.
func requires(body reflect.Type) bool {
	if body.Kind() != reflect.Struct {
		return true
	}
	for _, f := range reflect.VisibleFields(body) {
		tag := f.Tag.Get("json")
		if !f.Anonymous && tag != "-" && !strings.Contains(tag, "omit") {
			return true
		}
	}
	return false
}

// otherForms are those in which bodies may come or go beside JSON.
func (w *writer) otherForms(m mounted, o *huma.Operation) {
	text := &huma.Schema{Type: huma.TypeString}
	switch m.name {
	case "edit-job":
		o.RequestBody.Content["application/merge-patch+json"] = o.RequestBody.Content["application/json"]
	case "apply-policy":
		o.RequestBody.Content["application/yaml"] = &huma.MediaType{Schema: text}
	case "enqueue-bulk":
		o.RequestBody.Content["application/x-ndjson"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Description: "one draft a line"}}
		line := w.schema(reflect.TypeFor[api.Line](), "Line")
		w.told = append(w.told, line)
		o.Responses["200"].Content["application/x-ndjson"] = &huma.MediaType{Schema: line}
	case "enqueue":
		o.Responses["200"] = &huma.Response{Description: "the draft met a twin: nothing was added, and this is the twin", Content: o.Responses["201"].Content, Headers: o.Responses["201"].Headers}
	case "events", "follow-events":
		o.Responses["200"].Content = map[string]*huma.MediaType{"text/event-stream": {Schema: text}}
	}
}

// wordsOn are what is said of a route: its first sentence, without its stop; the rest, and who may ask.
func wordsOn(m mounted) (summary, more string) {
	summary, rest, _ := strings.Cut(m.about, ". ")
	if rest != "" {
		rest += "\n\n"
	}
	var may []string
	for _, scope := range []apikey.Scope{apikey.Viewer, apikey.Worker, apikey.Operator} {
		if scope.Allows(m.scope) || m.also != "" && scope.Allows(m.also) {
			may = append(may, string(scope))
		}
	}
	who := "admin"
	if len(may) > 0 {
		who = strings.Join(may, ", ") + " or admin"
	}
	more = rest + "Needs a key of scope " + who + "."
	if (Caller{Scope: apikey.Admin, Owner: "anybody"}).may(m) == nil {
		more += " One that is bound to an owner will do for what is the owner's."
	}
	return strings.TrimSuffix(summary, "."), more
}

// finish writes what is known only when all routes are there.
func (w *writer) finish() *huma.OpenAPI {
	w.webhooks()
	w.share()
	closed := map[string]bool{}
	w.reach(w.sent, closed)
	open := map[string]bool{}
	w.reach(w.told, open)
	for name, schema := range w.registry.Map() {
		w.polish(schema, w.registry.TypeFromRef(schemas+name))
		if open[name] || !closed[name] {
			schema.AdditionalProperties = nil // whoever reads an answer must not stumble over what is new in it
		}
	}
	w.each(func(s *huma.Schema) {
		if s.Type == huma.TypeArray {
			s.Nullable = false
		}
	})
	w.doc.Tags = chapters
	return w.doc
}

// reach finds the components that schemas lead to.
func (w *writer) reach(from []*huma.Schema, seen map[string]bool) {
	for _, s := range from {
		if s == nil {
			continue
		}
		if name, ok := strings.CutPrefix(s.Ref, schemas); ok && !seen[name] {
			seen[name] = true
			w.reach([]*huma.Schema{w.registry.Map()[name]}, seen)
		}
		w.reach(inside(s), seen)
	}
}

// each visits every schema of the document.
func (w *writer) each(visit func(*huma.Schema)) {
	var walk func(s *huma.Schema)
	walk = func(s *huma.Schema) {
		if s == nil {
			return
		}
		visit(s)
		for _, inner := range inside(s) {
			walk(inner)
		}
	}
	for _, s := range w.registry.Map() {
		walk(s)
	}
	for _, s := range append(w.sent, w.told...) {
		walk(s)
	}
}

func inside(s *huma.Schema) []*huma.Schema {
	list := append([]*huma.Schema{s.Items}, s.AnyOf...)
	for _, p := range s.Properties {
		list = append(list, p)
	}
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
		list = append(list, values)
	}
	return list
}

// example is one for a body, if there is one.
func example(name string) any {
	if text, ok := examples[name]; ok {
		return json.RawMessage(text)
	}
	return nil
}
