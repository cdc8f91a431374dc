package openapi

import (
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/server"
)

const schemas = "#/components/schemas/"

// A writer makes the OpenAPI document from the routes, the JSON types and the comments in the code.
type writer struct {
	doc      *huma.OpenAPI
	words    map[string]string // comments of the code, by type and field
	registry huma.Registry
	sent     []*huma.Schema           // schemas of requests: unknown members are refused
	told     []*huma.Schema           // schemas of answers: a newer server may send more
	shared   map[string][]*huma.Param // parameters of types that several requests may embed, by type and name
}

// write makes the document of all routes that a server has mounted.
func write(t *testing.T, s *server.Server) *huma.OpenAPI {
	t.Helper()
	w := newWriter(commentsIn(t))
	for _, o := range s.Operations() {
		w.operation(o)
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
		Servers:  []*huma.Server{{URL: "http://127.0.0.1:4747", Description: "a server on this machine"}},
		Security: []map[string][]string{{"key": {}}},
		Components: &huma.Components{
			Schemas: registry,
			Headers: headers(),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key": {Type: "http", Scheme: "bearer", Description: "An API key such as hf_<id>_<secret>_<check>. Create one with 'holdfast keys create' or POST /v1/keys. A key that is bound to an owner can only access that owner's jobs and groups; others are answered with not_found or forbidden. A server on your own machine may be open: then no key is needed."},
			},
		},
	}}
	problem := w.schema(reflect.TypeFor[api.Problem](), "Problem")
	w.doc.Components.Responses = map[string]*huma.Response{"Problem": {
		Description: "What went wrong, and what to do about it (RFC 9457).",
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem, Example: problemOf("conflict")}},
	}}
	w.told = append(w.told, problem)
	return w
}

// described is the type that the document describes in place of another.
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

// operation adds one route.
func (w *writer) operation(m api.Operation) {
	o := &huma.Operation{
		OperationID: m.Name, Method: m.Method, Path: api.Prefix + m.Path, Tags: []string{m.Tag},
		Responses: map[string]*huma.Response{"default": {Ref: "#/components/responses/Problem"}},
	}
	for _, code := range problemsOf(m) {
		status, name := w.problem(code)
		o.Responses[status] = &huma.Response{Ref: "#/components/responses/" + name}
	}
	o.Summary, o.Description = wordsOn(m)
	answer := &huma.Response{Description: http.StatusText(m.Status)}
	if m.Status != http.StatusNoContent {
		body := w.schema(m.Out, m.Name+"Out")
		answer.Content = map[string]*huma.MediaType{"application/json": {Schema: body, Example: example(m.Name + " out")}}
		w.told = append(w.told, body)
		answer.Headers = headersOf(m)
	}
	o.Responses[strconv.Itoa(m.Status)] = answer
	for _, f := range reflect.VisibleFields(m.In) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		if f.Name == "Body" {
			body := w.schema(f.Type, m.Name+"In")
			w.sent = append(w.sent, body)
			o.RequestBody = &huma.RequestBody{Required: requires(described(f.Type)), Content: map[string]*huma.MediaType{"application/json": {Schema: body, Example: example(m.Name + " in")}}}
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

// codes in the text about a route: Errors: conflict (...), not_found (...).
var errorsIn = regexp.MustCompile(`Errors: (.*)`)

// problemsOf are the codes of the problems with which a route may answer.
func problemsOf(m api.Operation) []string {
	codes := []string{"invalid", "unauthenticated", "forbidden", "throttled"}
	if said := errorsIn.FindStringSubmatch(m.About); said != nil {
		for _, code := range api.Codes() {
			if regexp.MustCompile(`\b` + code + `\b`).MatchString(said[1]) {
				codes = append(codes, code)
			}
		}
	}
	return codes
}

// problemOf is a problem as the server sends it.
func problemOf(code string) *api.Problem {
	return api.ProblemOf((&api.Problem{Code: code, Detail: details[code]}).Err())
}

// problem adds the code to the answers in the components, which are by status: several codes may have one.
func (w *writer) problem(code string) (status, name string) {
	p := problemOf(code)
	name = strings.ReplaceAll(http.StatusText(p.Status), " ", "")
	r := w.doc.Components.Responses[name]
	if r == nil {
		r = &huma.Response{Content: map[string]*huma.MediaType{"application/problem+json": {Schema: w.schema(reflect.TypeFor[api.Problem](), "Problem"), Examples: map[string]*huma.Example{}}}}
		if p.RetryAfter() > 0 {
			r.Headers = map[string]*huma.Param{"Retry-After": {Ref: "#/components/headers/Retry-After"}}
		}
		w.doc.Components.Responses[name] = r
	}
	shown := r.Content["application/problem+json"].Examples
	if shown[code] == nil {
		shown[code] = &huma.Example{Value: p}
		r.Description = strings.TrimPrefix(r.Description+"; "+code+": "+p.Title, "; ")
	}
	return strconv.Itoa(p.Status), name
}

// param adds a parameter, and records in which type it is declared.
func (w *writer) param(m api.Operation, f reflect.StructField, where, name string) *huma.Param {
	schema := huma.SchemaFromField(w.registry, f, name)
	told := &huma.Param{Name: name, In: where, Required: where == "path" || f.Tag.Get("required") == "true", Description: schema.Description, Schema: schema}
	schema.Description, schema.Nullable = "", false
	of := declarer(m.In, f).Name() + "." + name
	w.shared[of] = append(w.shared[of], told)
	return told
}

// share moves parameters that several routes have into the components.
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

// headers are the response headers that need a description.
func headers() map[string]*huma.Param {
	all := map[string]*huma.Param{}
	for name, about := range map[string]string{
		"X-Request-Id": "Id of this request, as in stories and logs.",
		"ETag":         "Version of the job, for If-Match.",
		"Link":         "URL of the next page (rel=next); missing on the last page.",
		"Location":     "Path of the new resource.",
		"Retry-After":  "Seconds after which the same request may succeed.",
	} {
		all[name] = &huma.Param{Description: about, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return all
}

// headersOf are the headers of a route's answer.
func headersOf(m api.Operation) map[string]*huma.Param {
	out, has := reflect.Zero(m.Out).Interface(), []string{"X-Request-Id"}
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

// requires reports whether a body must be sent: a body with only optional members may be left out.
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

// otherForms adds the content types beside JSON.
func (w *writer) otherForms(m api.Operation, o *huma.Operation) {
	text := &huma.Schema{Type: huma.TypeString}
	switch m.Name {
	case "edit-job":
		o.RequestBody.Content["application/merge-patch+json"] = o.RequestBody.Content["application/json"]
	case "apply-policy":
		o.RequestBody.Content["application/yaml"] = &huma.MediaType{Schema: text}
	case "enqueue-bulk":
		o.RequestBody.Content["application/x-ndjson"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Description: "One draft in each line."}}
		line := w.schema(reflect.TypeFor[api.Line](), "Line")
		w.told = append(w.told, line)
		o.Responses["200"].Content["application/x-ndjson"] = &huma.MediaType{Schema: line}
	case "enqueue":
		o.Responses["200"] = &huma.Response{Description: "A job with the same unique or idempotency key exists. Nothing was added; the answer is the existing job.", Content: o.Responses["201"].Content, Headers: o.Responses["201"].Headers}
	case "events", "follow-events":
		o.Responses["200"].Content = map[string]*huma.MediaType{"text/event-stream": {Schema: text}}
	}
}

// wordsOn is the summary of a route, which is the first sentence of About without its period, and the description: the rest and the scopes.
func wordsOn(m api.Operation) (summary, more string) {
	summary, rest, _ := strings.Cut(m.About, ". ")
	if rest != "" {
		rest += "\n\n"
	}
	var may []string
	for _, scope := range []apikey.Scope{apikey.Viewer, apikey.Worker, apikey.Operator} {
		if scope.Allows(m.Scope) || m.Also != "" && scope.Allows(m.Also) {
			may = append(may, string(scope))
		}
	}
	who := "admin"
	if len(may) > 0 {
		who = strings.Join(may, ", ") + " or admin"
	}
	more = rest + "Needs a key of scope " + who + "."
	if m.Bound {
		more += " A key that is bound to an owner may be used for that owner's jobs and groups."
	}
	return strings.TrimSuffix(summary, "."), more
}

// finish does what needs all routes.
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
			schema.AdditionalProperties = nil // clients must not fail on members that a newer server adds
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

// reach finds the components that schemas refer to.
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

// example is the recorded body of an operation: "enqueue in" or "enqueue out".
func example(name string) any {
	all, _ := exchanges() // tests of the examples report the error
	operation, way, _ := strings.Cut(name, " ")
	text := all[operation].Out
	if way == "in" {
		text = all[operation].In
	}
	if len(text) == 0 {
		return nil
	}
	return text
}
