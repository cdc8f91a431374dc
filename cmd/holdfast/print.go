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
			_, err = fmt.Fprintln(c.OutOrStdout(), string(text))
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

// printable keeps what a job carries from moving the cursor or colouring the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '�'
		}
		return r
	}, text)
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
