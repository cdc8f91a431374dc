package server

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const docsStyle = `body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1a1a1a;background:#fff}
h2{margin-top:2.5rem;text-transform:capitalize}dt{margin-top:1rem;font-family:ui-monospace,monospace;overflow-wrap:anywhere}dd{margin:.2rem 0 0 1rem}
dd p{margin:.2rem 0}small{color:#555}pre{white-space:pre-wrap;font:inherit}@media(prefers-color-scheme:dark){body{color:#eee;background:#111}a{color:#8cf}small{color:#aaa}}`

// docsPolicy is the Content-Security-Policy of the page: its own style, and nothing else.
var docsPolicy = func() string {
	sum := sha256.Sum256([]byte(docsStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

var docsTemplate = template.Must(template.New("docs").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{.Title}} API</title><style>{{.Style}}</style></head>
<body><main><h1>{{.Title}} API</h1>
<pre>{{.About}}</pre>
<p>For programs: <a href="/v1/openapi.json">openapi.json</a>, <a href="/v1/openapi.yaml">openapi.yaml</a></p>
<nav aria-label="Sections">{{range .Sections}}<a href="#{{.Name}}">{{.Name}}</a> {{end}}</nav>
{{range .Sections}}<section aria-labelledby="{{.Name}}"><h2 id="{{.Name}}">{{.Name}}</h2><p>{{.About}}</p><dl>
{{range .Routes}}<dt id="{{.Name}}">{{.Method}} {{.Path}}</dt><dd><pre>{{.About}}</pre>{{range .Params}}<p><code>{{.Name}}</code> <small>{{.In}}{{if .Required}}, required{{end}}</small> {{.Description}}</p>{{end}}</dd>
{{end}}</dl></section>
{{end}}</main></body></html>
`))

// A docsRoute is one route on the page.
type docsRoute struct {
	Name, Method, Path, About string
	Params                    []docsParam
}

type docsSection struct {
	Name, About string
	Routes      []docsRoute
}

// A docsParam is a parameter of a route, or a reference to a shared one.
type docsParam struct {
	Ref         string `yaml:"$ref"`
	Name, In    string
	Description string
	Required    bool
}

// A docsText is the part of the OpenAPI document that the page shows.
type docsText struct {
	Info  struct{ Title, Description string }
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]struct {
		Name                 string `yaml:"operationId"`
		Summary, Description string
		Tags                 []string
		Parameters           []docsParam
	}
	Components struct{ Parameters map[string]docsParam }
}

// docsPage renders the OpenAPI document for people, by section. The page needs no script and loads nothing.
func docsPage(document string) (string, error) {
	var doc docsText
	if err := yaml.Unmarshal([]byte(document), &doc); err != nil {
		return "", err
	}
	bySection := map[string][]docsRoute{}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			for i, p := range o.Parameters {
				if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
					o.Parameters[i] = doc.Components.Parameters[name]
				}
			}
			for _, tag := range o.Tags {
				bySection[tag] = append(bySection[tag], docsRoute{o.Name, strings.ToUpper(method), path, o.Summary + ". " + o.Description, o.Parameters})
			}
		}
	}
	var sections []docsSection
	for _, tag := range doc.Tags {
		routes := bySection[tag.Name]
		slices.SortFunc(routes, func(a, b docsRoute) int {
			return slices.Compare([]string{a.Path, a.Method}, []string{b.Path, b.Method})
		})
		sections = append(sections, docsSection{tag.Name, tag.Description, routes})
	}
	var page strings.Builder
	err := docsTemplate.Execute(&page, map[string]any{"Title": doc.Info.Title, "About": doc.Info.Description, "Style": template.CSS(docsStyle), "Sections": sections})
	return page.String(), err
}
