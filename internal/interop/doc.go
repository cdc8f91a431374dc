// Package interop tests Holdfast with independent implementations of the standards that it speaks: Standard Webhooks, CloudEvents, server-sent events and OpenAPI.
// It is a module of its own, so that users of the library do not have these implementations in their module graph.
package interop
