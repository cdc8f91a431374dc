package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfastdev/holdfast/api"
)

const schemas = "#/components/schemas/"

// A writer writes the OpenAPI document.
type writer struct {
	doc      *huma.OpenAPI
	registry huma.Registry
	sent     []*huma.Schema // what clients send: there, unknown members are refused
	told     []*huma.Schema // what they are told: there, a newer server may say more
}

func newWriter() *writer {
	registry := huma.NewMapRegistry(schemas, namer())
	for from, to := range aliases() {
		registry.RegisterTypeAlias(from, to)
	}
	for from, to := range api.Forms() {
		registry.RegisterTypeAlias(from, to)
	}
	w := &writer{registry: registry, doc: &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Holdfast", Version: "1", Description: overview,
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers:  []*huma.Server{{URL: "http://127.0.0.1:4747", Description: "a server on one's own machine"}},
		Security: []map[string][]string{{"key": {}}},
		Components: &huma.Components{
			Schemas: registry,
			Headers: map[string]*huma.Param{"X-Request-Id": {Description: "the id of this request, as stories and logs know it", Schema: &huma.Schema{Type: huma.TypeString}}},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key": {Type: "http", Scheme: "bearer", Description: "An API key, such as hf_<id>_<secret>_<check>. An operator makes them with 'holdfast keys make' or POST /v1/keys. A server on one's own machine may be open: then none is needed."},
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

func (w *writer) schema(t reflect.Type, hint string) *huma.Schema {
	if other, ok := reflect.Zero(t).Interface().(interface{ Described() reflect.Type }); ok {
		t = other.Described()
	}
	if t.Kind() == reflect.Struct && t.NumField() == 0 {
		return &huma.Schema{Type: huma.TypeObject}
	}
	return w.registry.Schema(t, true, hint)
}

// operation writes about one route.
func (w *writer) operation(d description) {
	o := &huma.Operation{
		OperationID: d.name, Method: d.method, Path: api.Prefix + d.path, Summary: summaryOf(d.about), Description: descriptionOf(d), Tags: []string{d.tag},
		Responses: map[string]*huma.Response{"4XX": {Ref: "#/components/responses/Problem"}, "5XX": {Ref: "#/components/responses/Problem"}},
	}
	answer := &huma.Response{Description: http.StatusText(d.status)}
	if d.status != http.StatusNoContent {
		body := w.schema(d.out, d.name+"Out")
		answer.Content = map[string]*huma.MediaType{"application/json": {Schema: body, Example: example(d.name + " out")}}
		w.told = append(w.told, body)
		answer.Headers = w.headersOf(d)
	}
	o.Responses[strconv.Itoa(d.status)] = answer
	for _, f := range reflect.VisibleFields(d.in) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		if f.Name == "Body" {
			body := w.schema(f.Type, d.name+"In")
			w.sent = append(w.sent, body)
			o.RequestBody = &huma.RequestBody{Required: requires(f.Type), Content: map[string]*huma.MediaType{"application/json": {Schema: body, Example: example(d.name + " in")}}}
			continue
		}
		for _, where := range []string{"path", "query", "header"} {
			if name, ok := f.Tag.Lookup(where); ok {
				schema := huma.SchemaFromField(w.registry, f, name)
				told := &huma.Param{Name: name, In: where, Required: where == "path" || f.Tag.Get("required") == "true", Description: schema.Description, Schema: schema}
				schema.Description, schema.Nullable = "", false
				o.Parameters = append(o.Parameters, told)
			}
		}
	}
	w.otherForms(d, o)
	w.doc.AddOperation(o)
}

// headersOf are the headers of an answer that say something.
func (w *writer) headersOf(d description) map[string]*huma.Param {
	text := func(about string) *huma.Param {
		return &huma.Param{Description: about, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	headers := map[string]*huma.Param{"X-Request-Id": {Ref: "#/components/headers/X-Request-Id"}}
	if _, ok := reflect.Zero(d.out).Interface().(interface{ Digest() string }); ok {
		headers["ETag"] = text("tells whether the job is still as somebody saw it; for If-Match")
	}
	if _, ok := reflect.Zero(d.out).Interface().(api.Pager); ok {
		headers["Link"] = text("leads to the next page (rel=next); none on the last")
	}
	if _, ok := reflect.Zero(d.out).Interface().(api.Announcer); ok {
		headers["Location"] = text("where to look for it")
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
func (w *writer) otherForms(d description, o *huma.Operation) {
	text := &huma.Schema{Type: huma.TypeString}
	switch d.name {
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

// summaryOf is the first sentence, without its stop.
func summaryOf(about string) string {
	first, _, more := strings.Cut(about, ". ")
	if more && len(first) > 10 {
		return first
	}
	return strings.TrimSuffix(about, ".")
}

// descriptionOf is all that is said of a route, and who may ask.
func descriptionOf(d description) string {
	who := "Everybody may ask."
	switch {
	case d.scope != "" && d.also != "":
		who = "Needs a key of scope " + string(d.scope) + ", " + string(d.also) + " or admin."
	case d.scope == "admin":
		who = "Needs a key of scope admin."
	case d.scope == "viewer":
		who = "Needs a key of scope viewer, operator or admin."
	case d.scope != "":
		who = "Needs a key of scope " + string(d.scope) + " or admin."
	}
	return d.about + "\n\n" + who
}

// finish writes what is known only when all routes are there.
func (w *writer) finish() *huma.OpenAPI {
	w.webhooks()
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
	var chapters []string
	for _, item := range w.doc.Paths {
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if o != nil {
				chapters = append(chapters, o.Tags...)
			}
		}
	}
	slices.Sort(chapters)
	for _, chapter := range slices.Compact(chapters) {
		w.doc.Tags = append(w.doc.Tags, &huma.Tag{Name: chapter, Description: cmp.Or(aboutChapters[chapter], chapter)})
	}
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
