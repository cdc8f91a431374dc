package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/config"
)

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Print what everything is set to, and where that was said; secrets are left out", Args: cobra.NoArgs,
		Long: `Prints what a server started here with the same flags would go by. Everything can be set by a flag of 'holdfast serve' or in the environment; what the
settings mean is told by 'holdfast serve --help' and docs/configuration.md.`,
		RunE: func(c *cobra.Command, _ []string) error {
			set, err := settings(c)
			if err != nil {
				return err
			}
			lines := set.Shown()
			return show(c, lines, func(out io.Writer) { printSettings(out, lines) })
		},
	}
	settingFlags(c)
	return c
}

func printSettings(out io.Writer, lines []config.Line) {
	rows := make([][]string, len(lines))
	for n, l := range lines {
		rows[n] = []string{l.Name, orDash(l.Value), l.From}
	}
	table(out, []string{"SETTING", "VALUE", "FROM"}, rows)
}
