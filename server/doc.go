// Package server is Holdfast's HTTP server. It mounts the routes of package api on the standard mux, and authenticates and authorises every request.
//
// Every request passes the same steps: who sends it (identify), is the scope sufficient (may), is it within the limits (limit), decode, does the job or
// group belong to the caller's owner (checkOwner), and the answer. These steps are written once. A route is one line that calls ops.Operator or the store.
package server
