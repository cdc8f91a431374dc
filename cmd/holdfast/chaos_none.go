//go:build !chaos

package main

import "github.com/spf13/cobra"

// chaosCommands returns none: the program that is released has no chaos tests. "make chaos" builds one that does, with the tag "chaos".
func chaosCommands() []*cobra.Command { return nil }
