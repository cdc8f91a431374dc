package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// addYesFlag adds --yes to a command that asks for confirmation.
func addYesFlag(c *cobra.Command) { c.Flags().Bool("yes", false, "do not ask for confirmation") }

// mustConfirm reports whether a command asks for confirmation and was called without --yes.
func mustConfirm(c *cobra.Command) bool {
	yes, err := c.Flags().GetBool("yes")
	return err == nil && !yes
}

// confirm asks the user, unless --yes was given. If standard input is not a terminal, the answer is no.
func confirm(c *cobra.Command, question string) error {
	if !mustConfirm(c) {
		return nil
	}
	if isTerminal(c.InOrStdin()) {
		fmt.Fprintf(c.ErrOrStderr(), "%s (yes or no) ", printable(question))
		answer, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "yes" || answer == "y" {
			return nil
		}
	}
	return errors.New("not confirmed: answer yes, or pass --yes")
}

// isTerminal reports whether a stream is a terminal that can redraw a line.
func isTerminal(stream any) bool {
	file, isFile := rawOf(stream).(*os.File)
	return isFile && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}
