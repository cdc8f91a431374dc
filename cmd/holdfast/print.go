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

	"github.com/holdfastdev/holdfast/api"
)

// show prints an answer: as JSON when asked to, as it also travels, else by the given function.
func show(c *cobra.Command, answer any, people func(out io.Writer)) error {
	if asJSON, _ := c.Flags().GetBool("json"); asJSON {
		text, err := api.MarshalIndent(answer)
		if err == nil {
			_, err = fmt.Fprintln(c.OutOrStdout(), escaped(text))
		}
		return err
	}
	people(c.OutOrStdout())
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

// compact is JSON without what means nothing, so that it looks the same near and far. What is no JSON is left as it is.
func compact(text []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return string(text)
	}
	return out.String()
}

// printLines prints a text of several lines, a stack for example, line by line, each after what it is. A tab is printed as spaces.
func printLines(out io.Writer, what, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		fmt.Fprintf(out, "%-14s %s\n", what, printable(line))
		what = ""
	}
}

func moment(t time.Time) string {
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
