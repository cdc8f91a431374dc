// Package console serves the web pages for operators.
//
// A Console is an http.Handler over an ops.Operator, which uses a store directly or a server over HTTP. An application can mount it under a prefix.
// Pages are rendered on the server. Reading and single actions work without JavaScript; the scripts add live updates and keyboard shortcuts.
// Each page has its own Go file, and a template under page/.
package console
