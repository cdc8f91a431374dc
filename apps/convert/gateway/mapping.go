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

// A mapping converts a document to XML. The same document always gives the same XML, which is valid against the mapping's schema.
type mapping struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	schema []byte
	write  func(*writer, *pdf.Document) error
	custom []byte // the text of a custom mapping; nil for a built-in one
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

// builtin are the built-in mappings.
var builtin = []mapping{
	{Name: "text", Title: "Text: pages and paragraphs", schema: textSchema, write: writeText},
	{Name: "layout", Title: "Layout: blocks, lines and words with their positions and fonts", schema: layoutSchema, write: writeLayout},
	{Name: "fields", Title: "Fields: form fields and metadata", schema: fieldsSchema, write: writeFields},
}

// maxMappingBytes is the maximum size of a mapping's file.
const maxMappingBytes = 256 << 10

// allMappings returns the built-in mappings and those of a folder: every file there that ends in .yaml or .yml.
func allMappings(folder string) ([]mapping, error) {
	all := append([]mapping(nil), builtin...)
	if folder == "" {
		return all, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder with mappings; set it to an existing folder, or leave it empty: %w", err)
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
			err = fmt.Errorf("%s: %[3]s already has the name %[2]q: choose another", file, m.Name, from[m.Name])
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
	text, err := io.ReadAll(io.LimitReader(f, maxMappingBytes+1))
	if err != nil {
		return mapping{}, err
	}
	return parseMapping(file, text)
}
