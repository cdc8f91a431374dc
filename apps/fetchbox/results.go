package main

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/store"
)

// results answers GET /api/jobs/{id}/results: every resource with its object or its failure, as a JSON array or CSV, while it is read from the store.
func (f *api) results(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := f.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	var to resultWriter
	switch r.URL.Query().Get("format") {
	case "", "json":
		w.Header().Set("Content-Type", "application/json")
		to = &jsonResults{to: w}
	case "csv":
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Disposition", `attachment; filename="`+group.ID.String()+`.csv"`)
		to = &csvResults{to: csv.NewWriter(w)}
	default:
		return apiError{code: code.ValidationInvalidField, line: "format must be json or csv."}
	}
	for cursor := ""; ; {
		views, next, err := f.resourceViews(r.Context(), store.Filter{Group: group.ID, Limit: maxLimit, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, v := range views {
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
	add(v resourceView) error
	end() error
}

type jsonResults struct {
	to http.ResponseWriter
	n  int
}

func (j *jsonResults) add(v resourceView) error {
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

func (c *csvResults) add(v resourceView) error {
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
