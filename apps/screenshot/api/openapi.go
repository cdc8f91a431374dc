package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
)

// openAPI answers with the description of the API, made of the routes and of the types of their bodies.
func (a *API) openAPI(c *call) error {
	return web.WriteJSON(c.w, http.StatusOK, a.Document())
}

// Document returns the description of the API in OpenAPI 3.1.
func (a *API) Document() map[string]any {
	d := &describer{schemas: map[string]any{}}
	paths := map[string]any{}
	for _, one := range a.routes() {
		item, _ := paths[Prefix+one.path].(map[string]any)
		if item == nil {
			item = map[string]any{}
			paths[Prefix+one.path] = item
		}
		item[strings.ToLower(one.method)] = d.operation(one)
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "Screenshot API", "version": "1", "description": "Pictures and PDFs of pages. Each costs credits, which are released if it fails."},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         d.schemas,
			"securitySchemes": map[string]any{"key": map[string]any{"type": "http", "scheme": "bearer", "description": "An API key, made on the page."}},
		},
	}
}

type describer struct{ schemas map[string]any }

func (d *describer) operation(one route) map[string]any {
	op := map[string]any{"summary": one.summary, "operationId": operationID(one), "responses": d.responses(one)}
	var parameters []any
	if strings.Contains(one.path, "{id}") {
		parameters = append(parameters, map[string]any{"name": "id", "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	for _, name := range one.query {
		parameters = append(parameters, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}})
	}
	if one.method == http.MethodPost && strings.HasPrefix(one.path, "/screenshots") && !strings.Contains(one.path, "{id}") {
		parameters = append(parameters, map[string]any{"name": "Idempotency-Key", "in": "header", "schema": map[string]any{"type": "string"}})
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	if one.scope != "" {
		op["security"] = []any{map[string]any{"key": []any{}}}
		op["x-scope"] = string(one.scope)
	}
	if one.request != nil {
		op["requestBody"] = map[string]any{"content": content(d.schema(reflect.TypeOf(one.request)))}
	}
	return op
}

func operationID(one route) string {
	return strings.ToLower(one.method) + strings.NewReplacer("/", "-", "{", "", "}", "", ".", "-").Replace(one.path)
}

func content(schema any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schema}}
}

func (d *describer) responses(one route) map[string]any {
	good := map[string]any{"description": "Success."}
	switch {
	case one.answer != nil:
		good["content"] = content(d.schema(reflect.TypeOf(one.answer)))
	case one.path == "/events":
		good["content"] = map[string]any{"text/event-stream": map[string]any{}}
	case strings.HasSuffix(one.path, ".json"):
		good["content"] = content(map[string]any{"type": "object"})
	default:
		binary := map[string]any{}
		for _, media := range []string{"image/png", "image/jpeg", "image/webp", "application/pdf"} {
			binary[media] = map[string]any{}
		}
		good["content"] = binary
	}
	all := map[string]any{itoa(one.status): good}
	if one.method == http.MethodPost && one.status == http.StatusAccepted {
		all["200"] = good
	}
	refusals := one.refusals
	if one.scope != "" {
		refusals = append([]string{code.Validation, code.Unauthorized, code.Forbidden, code.RateLimited}, refusals...)
	}
	for _, name := range refusals {
		c := code.Of(name)
		all[itoa(c.HTTPStatus)] = map[string]any{"description": name + ": " + c.Message, "content": content(d.schema(reflect.TypeFor[failed]()))}
	}
	return all
}

func itoa(n int) string { return strconv.Itoa(n) }

var (
	typeTime = reflect.TypeFor[time.Time]()
	typeID   = reflect.TypeFor[holdfast.ID]()
)

// schema describes a type as encoding/json writes it. Structs become components.
func (d *describer) schema(t reflect.Type) map[string]any {
	switch {
	case t == typeTime:
		return map[string]any{"type": "string", "format": "date-time"}
	case t == typeID:
		return map[string]any{"type": "string"}
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(d.schema(t.Elem()))
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": []any{"array", "null"}, "items": d.schema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": []any{"object", "null"}, "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		name := nameOf(t)
		if _, ok := d.schemas[name]; !ok {
			d.schemas[name] = nil // ends a type that contains itself
			d.schemas[name] = d.object(t)
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	}
	return map[string]any{"type": "integer"}
}

func nullable(schema map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
}

// nameOf returns the name of the component of a type: package and type, so that it is unique.
func nameOf(t reflect.Type) string {
	pkg := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]
	return strings.ToUpper(pkg[:1]) + pkg[1:] + strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
}

func (d *describer) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if !f.IsExported() || name == "-" || f.Anonymous && tag == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		properties[name] = d.schema(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	object := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		object["required"] = required
	}
	return object
}
