package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
)

// The OpenAPI document as package api has it, and its other forms, which are made at the first request.
var (
	documentYAML = func() (string, error) { return api.Document, nil }
	documentJSON = sync.OnceValues(func() (string, error) { return jsonOf(api.Document) })
	documentPage = sync.OnceValues(func() (string, error) { return docsPage(api.Document) })
)

// mountDocument mounts the OpenAPI document. It needs no key, because it is public anyway.
func (s *Server) mountDocument() {
	for path, form := range map[string]struct {
		kind string
		text func() (string, error)
	}{
		api.Prefix + "/openapi.json": {"application/vnd.oai.openapi+json;version=3.1", documentJSON},
		api.Prefix + "/openapi.yaml": {"application/yaml", documentYAML},
		"/docs":                      {"text/html; charset=utf-8", documentPage},
	} {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			text, err := form.text()
			if err != nil {
				s.refuse(w, r, err)
				return
			}
			w.Header().Set("Content-Type", form.kind)
			w.Header().Set("Content-Security-Policy", docsPolicy)
			_, _ = io.WriteString(w, text)
		})
	}
	s.mux.HandleFunc("GET /problems/{code}", func(w http.ResponseWriter, r *http.Request) {
		text, ok := api.ProblemPage(r.PathValue("code"))
		if !ok {
			s.refuse(w, r, &holdfast.Error{Err: holdfast.ErrNotFound, Message: "there is no problem with this code: use the path in the type of a problem"})
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, text)
	})
}

// jsonOf converts YAML to JSON and keeps the order of members.
func jsonOf(text string) (string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return "", err
	}
	var b bytes.Buffer
	err := writeNode(&b, &root)
	return b.String(), err
}

func writeNode(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return writeNode(b, n.Content[0])
	case yaml.MappingNode:
		return writeAll(b, n.Content, "{}", ":,")
	case yaml.SequenceNode:
		return writeAll(b, n.Content, "[]", ",,")
	case yaml.ScalarNode:
		return writeScalar(b, n)
	}
	return fmt.Errorf("line %d of the document: YAML aliases cannot be converted to JSON", n.Line)
}

// writeAll writes the nodes of a list, or the keys and values of a mapping. The two bytes of between are written in turn.
func writeAll(b *bytes.Buffer, inside []*yaml.Node, around, between string) error {
	b.WriteByte(around[0])
	for i, n := range inside {
		if i > 0 {
			b.WriteByte(between[(i-1)%2])
		}
		if err := writeNode(b, n); err != nil {
			return err
		}
	}
	b.WriteByte(around[1])
	return nil
}

// writeScalar writes numbers, booleans and null as they are, and everything else, also dates, as strings.
func writeScalar(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		if json.Valid([]byte(n.Value)) {
			b.WriteString(n.Value)
			return nil
		}
	}
	text, err := json.Marshal(n.Value)
	b.Write(text)
	return err
}
