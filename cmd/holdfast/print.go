package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/internal/api"
)

// show prints an answer: with --json in the API's JSON, otherwise as text by the given function.
func show(c *cobra.Command, answer any, printText func(out io.Writer)) error {
	if asJSON, _ := c.Flags().GetBool("json"); asJSON {
		text, err := api.MarshalIndent(answer)
		if err == nil {
			_, err = fmt.Fprintln(c.OutOrStdout(), escaped(text))
		}
		return err
	}
	printText(c.OutOrStdout())
	return nil
}

// table prints aligned columns.
func table(out io.Writer, head []string, rows [][]string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, row := range rows {
		for n := range row {
			row[n] = printable(row[n])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
}

// compact removes insignificant white space from JSON, so that it looks the same from a store and from a server. Text that is not JSON is unchanged.
func compact(text []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return string(text)
	}
	return out.String()
}

// printLines prints a text of several lines, such as a stack trace, with a label before the first. Tabs become spaces.
func printLines(out io.Writer, label, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		fmt.Fprintf(out, "%-14s %s\n", label, printable(line))
		label = ""
	}
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
