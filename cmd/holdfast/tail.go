package main

import "github.com/spf13/cobra"

// tailCommand is 'events' for whoever wants to watch.
func tailCommand() *cobra.Command {
	c := eventsCommand()
	c.Use, c.Short = "tail", "Watch what happens, live: 'events --follow' with the last few before"
	c.Long = ""
	c.Example = `  holdfast tail
  holdfast tail --event failed --kind mail --json`
	follow, limit := c.Flags().Lookup("follow"), c.Flags().Lookup("limit")
	for flag, text := range map[string]string{"follow": "true", "limit": "10"} {
		_ = c.Flags().Set(flag, text) // both are what they can be
	}
	follow.DefValue, limit.DefValue, follow.Hidden = "true", "10", true
	return c
}
