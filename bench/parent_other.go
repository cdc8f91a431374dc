//go:build !linux

package main

import "os/exec"

// endWithParent does nothing on this system. An interrupt still stops all started programs.
func endWithParent(*exec.Cmd) {}
