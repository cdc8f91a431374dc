// Package api defines Holdfast's HTTP API: one table of routes and the JSON types.
//
// A Route describes one operation: method, path, required scope, input and output. The server mounts it, package client calls it, the OpenAPI document
// describes it and the server's authorisation uses it, so that they cannot differ. The JSON types are those of packages holdfast, store and ops.
// Durations are strings such as "1m30s", so that no number exceeds what a program in another language can hold.
package api
