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

// asks gives a verb that moves many jobs at once the flag that answers its question.
func asks(c *cobra.Command) { c.Flags().Bool("yes", false, "do not ask") }

// mustAsk reports whether nobody has said yes yet to a verb that asks.
func mustAsk(c *cobra.Command) bool {
	yes, err := c.Flags().GetBool("yes")
	return err == nil && !yes
}

// sure asks a person, unless --yes was given. Where nobody can answer, the answer is no.
func sure(c *cobra.Command, question string) error {
	if !mustAsk(c) {
		return nil
	}
	if isTerminal(c.InOrStdin()) {
		fmt.Fprintf(c.ErrOrStderr(), "%s (yes or no) ", printable(question))
		answer, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "yes" || answer == "y" {
			return nil
		}
	}
	return errors.New("not done: answer yes, or give --yes")
}

// isTerminal reports whether somebody sits there who can answer, and see a line being drawn again.
func isTerminal(stream any) bool {
	file, isFile := rawOf(stream).(*os.File)
	return isFile && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}
