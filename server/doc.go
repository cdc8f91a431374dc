// Package server answers over HTTP: it mounts the routes of package api on the standard mux, and lets nobody through who may not.
//
// A request passes one path: who asks (caller), may they (gate), not too often and not too much (limit), what exactly (decode), is it theirs (gate
// again), the answer. Everything that is true of every route is done there, once; what a route does is a line that calls the operator's desk or
// the store.
package server
