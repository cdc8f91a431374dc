// Package api defines Holdfast's HTTP API: one table of routes, the JSON types, and a client.
//
// A Route describes one operation: method, path, required scope, input and output. The server mounts it, the client calls it, the OpenAPI document
// describes it and the server's authorisation uses it, so that they cannot differ. The JSON types are those of the root package and of package ops.
// Durations are strings such as "1m30s", so that no number exceeds what a program in another language can hold.
//
// A Client implements the same interfaces as a local store: Client.Store implements holdfast.Store, so that an engine runs on it unchanged, and
// Client.Desk implements ops.Desk.
package api
