//go:build !unix

package chaos

import (
	"errors"
	"os"
)

var gracefulSignals = []os.Signal{os.Interrupt}

var sigKill, sigStop, sigCont, sigTerm = os.Kill, os.Kill, os.Kill, os.Kill

func checkPlatform() error {
	return errors.New("chaos needs POSIX signals, which this system does not have: run it on Linux or macOS")
}
