package server

import (
	"net/http"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/key"
)

// A document describes every route by the very types that travel. It is written when somebody asks for it first.
type document struct {
	routes []description

	once sync.Once
	api  *huma.OpenAPI
	json []byte
	yaml []byte
	page []byte // for people
	err  error
}

// A description is what a document says of one route.
type description struct {
	name, method, path string
	about, tag         string
	scope, also        key.Scope
	status             int
	in, out            reflect.Type
}

// describe puts a route into the document.
func describe[In, Out any](s *Server, r api.Route[In, Out]) {
	s.doc.routes = append(s.doc.routes, description{
		name: r.Name, method: r.Method, path: r.Path, about: r.About, tag: r.Tag, scope: r.Scope, also: r.Also,
		status: statusOf[Out](r.Status), in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](),
	})
}

// write makes the document.
func (d *document) write() error {
	d.once.Do(func() {
		w := newWriter()
		for _, route := range d.routes {
			w.operation(route)
		}
		d.api = w.finish()
		if d.json, d.err = d.api.MarshalJSON(); d.err != nil {
			return
		}
		if d.yaml, d.err = d.api.YAML(); d.err != nil {
			return
		}
		d.page, d.err = docsPage(d.api)
	})
	return d.err
}

// mountDocument lets everybody read what can be asked here. It holds nothing but what is published anyway.
func (s *Server) mountDocument() {
	for path, form := range map[string]struct {
		kind string
		text func() []byte
	}{
		api.Prefix + "/openapi.json": {"application/vnd.oai.openapi+json;version=3.1", func() []byte { return s.doc.json }},
		api.Prefix + "/openapi.yaml": {"application/yaml", func() []byte { return s.doc.yaml }},
		"/docs":                      {"text/html; charset=utf-8", func() []byte { return s.doc.page }},
	} {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if err := s.doc.write(); err != nil {
				s.refuse(w, r, err)
				return
			}
			w.Header().Set("Content-Type", form.kind)
			w.Header().Set("Content-Security-Policy", docsMay)
			_, _ = w.Write(form.text())
		})
	}
}
