package server

import (
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfastdev/holdfast/api"
)

// newDocument begins the OpenAPI document, which describes every route by the very types that travel.
func newDocument() *huma.OpenAPI {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[time.Duration](), reflect.TypeFor[string]())
	return &huma.OpenAPI{
		OpenAPI:    "3.1.0",
		Info:       &huma.Info{Title: "Holdfast", Version: "1", Description: "Background jobs that do not get lost."},
		Components: &huma.Components{Schemas: registry},
	}
}

// describe puts a route into the document.
func (s *Server) describe(name, method, path, about, tag string, status int, in, out any) {
	registry := s.doc.Components.Schemas
	o := &huma.Operation{
		OperationID: name, Method: method, Path: api.Prefix + path, Summary: about, Tags: []string{tag},
		Responses: map[string]*huma.Response{
			"default": {Description: "what went wrong", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: registry.Schema(reflect.TypeFor[api.Problem](), true, "Problem")}}},
		},
	}
	answer := &huma.Response{Description: http.StatusText(status)}
	if status != http.StatusNoContent {
		answer.Content = map[string]*huma.MediaType{"application/json": {Schema: registry.Schema(reflect.TypeOf(out).Elem(), true, name+"Out")}}
	}
	o.Responses[strconv.Itoa(status)] = answer
	for _, f := range reflect.VisibleFields(reflect.TypeOf(in).Elem()) {
		if f.Name == "Body" && f.IsExported() {
			o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: registry.Schema(f.Type, true, name+"In")}}}
			continue
		}
		for _, where := range []string{"path", "query", "header"} {
			if param, ok := f.Tag.Lookup(where); ok {
				o.Parameters = append(o.Parameters, &huma.Param{Name: param, In: where, Required: where == "path", Description: f.Tag.Get("doc"), Schema: registry.Schema(f.Type, true, param)})
			}
		}
	}
	s.doc.AddOperation(o)
}
