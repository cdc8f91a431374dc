// Package openapi writes the OpenAPI document from the routes, types and comments of Holdfast, and checks with two independent libraries that the committed document
// is up to date, that it is sound, and that a server answers as it says. To write it after a change, run in internal/interop:
//
//	go test ./openapi -run TheDocument -update
package openapi
