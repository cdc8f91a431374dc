//go:build !linux

package execjob

// hideEnvironment does nothing: it is implemented for Linux only.
func hideEnvironment() {}

// killDescendants does nothing: processes outside the process group can be found on Linux only.
func killDescendants([]string) {}
