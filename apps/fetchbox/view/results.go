package view

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/store"
)

// WriteResults answers a request with every resource of a group, each with its object or its failure, as a JSON array or CSV (format json or csv; empty: json), while it
// reads them from the store.
func (r *Reader) WriteResults(w http.ResponseWriter, request *http.Request, group holdfast.ID, format string) error {
	var to resultWriter
	switch format {
	case "", "json":
		w.Header().Set("Content-Type", "application/json")
		to = &jsonResults{to: w}
	case "csv":
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Disposition", `attachment; filename="`+group.String()+`.csv"`)
		to = &csvResults{to: csv.NewWriter(w)}
	default:
		return refusal.Invalid("format must be json or csv.")
	}
	for cursor := ""; ; {
		resources, next, err := r.Resources(request.Context(), store.Filter{Group: group, Limit: MaxLimit, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, v := range resources {
			if err := to.add(v); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return to.end()
		}
	}
}

// A resultWriter writes the manifest of results.
type resultWriter interface {
	add(v Resource) error
	end() error
}

type jsonResults struct {
	to http.ResponseWriter
	n  int
}

func (j *jsonResults) add(v Resource) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	before := ",\n"
	if j.n == 0 {
		before = "[\n"
	}
	j.n++
	_, err = j.to.Write(append([]byte(before), text...))
	return err
}

func (j *jsonResults) end() error {
	text := "\n]\n"
	if j.n == 0 {
		text = "[]\n"
	}
	_, err := j.to.Write([]byte(text))
	return err
}

type csvResults struct {
	to *csv.Writer
	n  int
}

func (c *csvResults) add(v Resource) error {
	if c.n == 0 {
		if err := c.to.Write([]string{"index", "id", "url", "state", "attempts", "key", "size", "sha256", "type", "code", "message", "dead_letter"}); err != nil {
			return err
		}
	}
	c.n++
	row := []string{strconv.Itoa(v.Index), v.ID.String(), plainCell(v.URL), string(v.State), strconv.Itoa(v.Attempts), v.Key, "", "", "", "", "", ""}
	if v.Result != nil {
		row[6], row[7], row[8] = strconv.FormatInt(v.Result.Size, 10), v.Result.SHA256, plainCell(v.Result.Type)
	}
	if v.Failure != nil {
		row[9], row[10] = v.Failure.Code, plainCell(v.Failure.Message)
	}
	if v.DeadLetter > 0 {
		row[11] = strconv.FormatUint(v.DeadLetter, 10)
	}
	return c.to.Write(row)
}

// plainCell keeps a spreadsheet from reading a text as a formula.
func plainCell(text string) string {
	if text != "" && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@' || text[0] == '\t') {
		return "'" + text
	}
	return text
}

func (c *csvResults) end() error {
	c.to.Flush()
	return c.to.Error()
}
