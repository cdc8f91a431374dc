package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

const docsStyle = `body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1a1a1a;background:#fff}
h2{margin-top:2.5rem;text-transform:capitalize}dt{margin-top:1rem;font-family:ui-monospace,monospace;overflow-wrap:anywhere}dd{margin:.2rem 0 0 1rem}
dd p{margin:.2rem 0}small{color:#555}pre{white-space:pre-wrap;font:inherit}@media(prefers-color-scheme:dark){body{color:#eee;background:#111}a{color:#8cf}small{color:#aaa}}`

// docsMay is what the page may do in a browser: look as it does, and nothing else.
var docsMay = func() string {
	sum := sha256.Sum256([]byte(docsStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

var docsTemplate = template.Must(template.New("docs").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{.Title}} API</title><style>{{.Style}}</style></head>
<body><main><h1>{{.Title}} API</h1>
<pre>{{.About}}</pre>
<p>For programs: <a href="/v1/openapi.json">openapi.json</a>, <a href="/v1/openapi.yaml">openapi.yaml</a></p>
<nav aria-label="Chapters">{{range .Chapters}}<a href="#{{.Name}}">{{.Name}}</a> {{end}}</nav>
{{range .Chapters}}<section aria-labelledby="{{.Name}}"><h2 id="{{.Name}}">{{.Name}}</h2><p>{{.About}}</p><dl>
{{range .Routes}}<dt id="{{.Name}}">{{.Method}} {{.Path}}</dt><dd><pre>{{.About}}</pre>{{range .Params}}<p><code>{{.Name}}</code> <small>{{.In}}{{if .Required}}, required{{end}}</small> {{.Description}}</p>{{end}}</dd>
{{end}}</dl></section>
{{end}}</main></body></html>
`))

type docsRoute struct {
	Name, Method, Path, About string
	Params                    []*huma.Param
}

type docsChapter struct {
	Name, About string
	Routes      []docsRoute
}

// docsPage is the document for people: what can be asked, by chapter. It needs no script and nothing from elsewhere.
func docsPage(doc *huma.OpenAPI) ([]byte, error) {
	var chapters []docsChapter
	for _, tag := range doc.Tags {
		chapter := docsChapter{Name: tag.Name, About: tag.Description}
		for path, item := range doc.Paths {
			for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
				if o != nil && slices.Contains(o.Tags, tag.Name) {
					chapter.Routes = append(chapter.Routes, docsRoute{o.OperationID, o.Method, path, o.Description, o.Parameters})
				}
			}
		}
		slices.SortFunc(chapter.Routes, func(a, b docsRoute) int {
			return slices.Compare([]string{a.Path, a.Method}, []string{b.Path, b.Method})
		})
		chapters = append(chapters, chapter)
	}
	var page bytes.Buffer
	err := docsTemplate.Execute(&page, map[string]any{"Title": doc.Info.Title, "About": doc.Info.Description, "Style": template.CSS(docsStyle), "Chapters": chapters})
	return page.Bytes(), err
}
