// Package console is the face for people: the pages they keep open while things are on fire.
//
// It is an http.Handler on an operator's desk (ops.Desk), near its store or far from it, and may be mounted under a prefix of somebody else's server.
// Pages are rendered here and work without a script for reading and for single actions; scripts only make them live and quicker to use.
// Every screen is a file of its own, with a page of the same name under page/.
package console
