package replay

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Request is the body of a request for a replay.
type Request struct {
	Spec
	DryRun bool `json:"dry_run,omitempty"` // only show what would be replayed
}

// A FilterText is a filter as people write it: on the command line, in a form, in a query. Empty fields select everything.
type FilterText struct {
	Sequence     string // 17, 17-42 or 17-
	Job          string // an id
	Since, Until string // a time such as 2026-01-31T12:00:00Z, or an age such as 2h
}

// ParseInto sets the fields of a filter. The error names every field that cannot be read. Ages are subtracted from the current time.
func (t FilterText) ParseInto(f *Filter) error {
	var jobErr error
	if t.Job != "" {
		f.Job, jobErr = holdfast.ParseID(t.Job)
	}
	return errors.Join(parseSequence(t.Sequence, f), jobErr, parseInstant("since", t.Since, &f.Since), parseInstant("until", t.Until, &f.Until))
}

func parseSequence(text string, into *Filter) (err error) {
	if text == "" {
		return nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if into.From, err = strconv.ParseUint(from, 10, 64); err == nil {
		switch {
		case !isRange:
			into.To = into.From
		case to != "":
			into.To, err = strconv.ParseUint(to, 10, 64)
		}
	}
	if err != nil {
		return errors.New("-seq: use 17, 17-42 or 17-")
	}
	return nil
}

func parseInstant(name, text string, into *time.Time) error {
	if text == "" {
		return nil
	}
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		*into = time.Now().Add(-age).UTC()
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("-%s: use a time such as 2026-01-31T12:00:00Z, or an age such as 2h", name)
	}
	*into = at.UTC()
	return nil
}
