package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/internal/config"
)

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Print the settings and where each value comes from, without secrets", Args: cobra.NoArgs,
		Long: `Prints the settings that 'holdfast serve' would use here with the same flags. Each setting is a flag of 'holdfast serve' or an environment variable:
see 'holdfast serve --help' and docs/configuration.md.`,
		RunE: func(c *cobra.Command, _ []string) error {
			set, err := settings(c)
			if err != nil {
				return err
			}
			lines := set.Shown()
			return show(c, lines, func(out io.Writer) { printSettings(out, lines) })
		},
	}
	addSettingFlags(c)
	return c
}

func printSettings(out io.Writer, lines []config.Line) {
	rows := make([][]string, len(lines))
	for n, l := range lines {
		rows[n] = []string{l.Name, orDash(l.Value), l.From}
	}
	table(out, []string{"SETTING", "VALUE", "FROM"}, rows)
}
