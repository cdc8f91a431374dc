//go:build !linux

package measure

import "os/exec"

// endWithUs can promise nothing here; a worker process ends by itself when its input does.
func endWithUs(*exec.Cmd) {}
