package api

import _ "embed"

// Document is the OpenAPI 3.1 description of every route, in YAML. It is generated from the routes and types of this package; the tests in
// internal/interop/openapi write it, and fail when it is out of date.
//
//go:embed openapi.yaml
var Document string
