//go:build !linux && !darwin

package execjob

const canLimit = false

// Main does nothing: this system cannot limit programs.
func Main() {}

// command returns the file to start and its arguments.
func (p Program) command(args []string) (name string, all []string) {
	return p.Path, append(append([]string{p.Path}, p.Args...), args...)
}
