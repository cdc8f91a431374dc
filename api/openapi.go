package api

import _ "embed"

// Document describes every route to people and programs, as OpenAPI 3.1 in YAML. It is made from the routes and the types that travel, and a test of the
// server keeps it true to them.
//
//go:embed openapi.yaml
var Document string
