package main

import "github.com/spf13/cobra"

// tailCommand is 'events --follow', preceded by the last ten events.
func tailCommand() *cobra.Command {
	c := eventsCommand()
	c.Use, c.Short = "tail", "Print the last events and follow new ones, like 'events --follow'"
	c.Long = ""
	c.Example = `  holdfast tail
  holdfast tail --event failed --kind mail --json`
	follow, limit := c.Flags().Lookup("follow"), c.Flags().Lookup("limit")
	for flag, text := range map[string]string{"follow": "true", "limit": "10"} {
		_ = c.Flags().Set(flag, text) // both values are valid
	}
	follow.DefValue, limit.DefValue, follow.Hidden = "true", "10", true
	return c
}
