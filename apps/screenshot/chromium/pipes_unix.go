//go:build unix

package chromium

import (
	"io"
	"os"
	"os/exec"
)

// pipes connects a program that is not started yet. It reads commands from its file 3 and writes answers and events to its file 4. theirs are closed after the start.
func pipes(cmd *exec.Cmd) (theirs []*os.File, from io.ReadCloser, to io.WriteCloser, err error) {
	read, write, from, to, err := makePipes()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd.ExtraFiles = []*os.File{read, write}
	return cmd.ExtraFiles, from, to, nil
}
