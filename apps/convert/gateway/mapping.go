package gateway

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// A mapping makes XML of a document. The same document always becomes the same XML, valid against the mapping's schema.
type mapping struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	schema []byte
	write  func(*writer, *pdf.Document) error
	own    []byte // the text it was made of, when it is the user's
}

// writeTo writes the whole XML.
func (m mapping) writeTo(to io.Writer, d *pdf.Document) error {
	w := &writer{to: bufio.NewWriterSize(to, 64<<10)}
	w.begin()
	if err := m.write(w, d); err != nil {
		return err
	}
	return w.end()
}

// The schemas of the built-in mappings.
var (
	//go:embed schemas/text.xsd
	textSchema []byte
	//go:embed schemas/layout.xsd
	layoutSchema []byte
	//go:embed schemas/fields.xsd
	fieldsSchema []byte
)

// builtin are the mappings that are always there.
var builtin = []mapping{
	{Name: "text", Title: "Text: pages and paragraphs", schema: textSchema, write: writeText},
	{Name: "layout", Title: "Layout: blocks, lines and words with their places and fonts", schema: layoutSchema, write: writeLayout},
	{Name: "fields", Title: "Fields: form fields and metadata", schema: fieldsSchema, write: writeFields},
}

// largestMapping is the size of a mapping's file in bytes.
const largestMapping = 256 << 10

// allMappings are the built-in ones and those in a folder: each file there that ends in .yaml or .yml.
func allMappings(folder string) ([]mapping, error) {
	all := append([]mapping(nil), builtin...)
	if folder == "" {
		return all, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("the folder with mappings cannot be read: name one that is there, or none: %w", err)
	}
	var problems []error
	from := make(map[string]string)
	for _, e := range entries {
		file := e.Name()
		if end := filepath.Ext(file); e.IsDir() || end != ".yaml" && end != ".yml" || strings.HasPrefix(file, ".") {
			continue
		}
		m, err := readMapping(folder, file)
		if err == nil && from[m.Name] != "" {
			err = fmt.Errorf("%s: the name %q is taken by %s already: choose another", file, m.Name, from[m.Name])
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		from[m.Name] = file
		all = append(all, m)
	}
	return all, errors.Join(problems...)
}

func readMapping(folder, file string) (mapping, error) {
	f, err := os.Open(filepath.Join(folder, file))
	if err != nil {
		return mapping{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, largestMapping+1))
	if err != nil {
		return mapping{}, err
	}
	return parseMapping(file, text)
}
