// Package api is how Holdfast is spoken to over HTTP: one table of routes with the types that travel, and a client.
//
// A Route says everything about one question: method, path, who may ask, what goes in and what comes out. The server mounts it, the client calls
// it, the OpenAPI document describes it and the gate judges by it, so none of them can drift from the others. Types that travel are those of the
// vocabulary and of the operator's desk; durations are texts such as "1m30s", so that no number outgrows what a program in another language can
// hold.
//
// A Client is far from the store and otherwise the same: Store plays a store's roles, so that an engine runs on it unchanged, and Desk is an
// operator's desk.
package api
