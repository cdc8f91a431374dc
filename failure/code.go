package failure

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Blame says who can fix the cause of a failure.
type Blame string

const (
	BlameUser       Blame = "user"       // the caller that enqueued the job: a different request may work
	BlameDependency Blame = "dependency" // a service that the job calls: it has to recover
	BlameUs         Blame = "us"         // the operators: our program, configuration or machines
)

// HTTPStatus returns the status of codes with this blame that name none: 422 for the user, 502 for a dependency, 500 for us.
func (b Blame) HTTPStatus() int {
	switch b {
	case BlameUser:
		return 422
	case BlameDependency:
		return 502
	}
	return 500
}

// A Code describes one cause of failure. Job records, the API, logs, metrics and pages all use the same value.
type Code struct {
	Name       string `json:"name"`      // upper case, digits and underscores
	Category   string `json:"category"`  // one of Categories
	Retryable  bool   `json:"retryable"` // whether a later attempt may succeed
	Blame      Blame  `json:"blame"`
	HTTPStatus int    `json:"http_status"`      // answer of an HTTP API when this is the cause; Blame.HTTPStatus when zero
	Message    string `json:"message"`          // one line for users
	Remedy     string `json:"remedy"`           // one line for operators: what to check and what to do
	Benign     bool   `json:"benign,omitempty"` // an expected end: failures with this code raise no alert
}

// Categories lists all categories. The list is closed, so that dashboards and alerts can name every category.
func Categories() []string {
	return []string{
		"input", "auth", "timeout", "network", "throttled", "dependency", "storage",
		"handler", "system", "lost", "expired", "unknown",
	}
}

// A Taxonomy is the set of codes that an application knows: the built-in ones and its own. A nil Taxonomy and the zero value
// contain the built-in codes. A Taxonomy does not change and is safe for concurrent use.
type Taxonomy struct {
	own   map[string]Code
	order []string // own codes that replace no built-in code, as given
}

// NewTaxonomy returns the built-in codes and those of the application. A code with a built-in name replaces the built-in
// one. The error names every code that is incomplete or given twice.
func NewTaxonomy(own ...Code) (*Taxonomy, error) {
	t := &Taxonomy{own: make(map[string]Code, len(own))}
	var problems []error
	for _, code := range own {
		if code.HTTPStatus == 0 {
			code.HTTPStatus = code.Blame.HTTPStatus()
		}
		problems = append(problems, code.Check())
		if _, twice := t.own[code.Name]; twice {
			problems = append(problems, fmt.Errorf("failure code %q is given twice: keep one", code.Name))
			continue
		}
		t.own[code.Name] = code
		if _, known := builtinByName[code.Name]; !known {
			t.order = append(t.order, code.Name)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return t, nil
}

// Code returns the code with a name, and whether there is one.
func (t *Taxonomy) Code(name string) (Code, bool) {
	if t != nil {
		if code, ok := t.own[name]; ok {
			return code, true
		}
	}
	code, ok := builtinByName[name]
	return code, ok
}

// Codes returns every code: the built-in ones in their order, then the application's own as they were given.
func (t *Taxonomy) Codes() []Code {
	codes := slices.Clone(builtin)
	if t == nil {
		return codes
	}
	for i, code := range codes {
		if own, ok := t.own[code.Name]; ok {
			codes[i] = own
		}
	}
	for _, name := range t.order {
		codes = append(codes, t.own[name])
	}
	return codes
}

// Own returns the codes that are not built in or that replace a built-in one, sorted by name.
func (t *Taxonomy) Own() []Code {
	if t == nil {
		return nil
	}
	own := slices.Collect(maps.Values(t.own))
	slices.SortFunc(own, func(a, b Code) int { return strings.Compare(a.Name, b.Name) })
	return own
}

// Check returns an error that names every missing or invalid field, or nil.
func (c Code) Check() error {
	var problems []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf("failure code %.80q: "+format, append([]any{c.Name}, args...)...))
		}
	}
	refuse(!ValidName(c.Name), "the name must be 1 to %d of A-Z, 0-9 and _, and start with a letter", maxCodeName)
	refuse(!slices.Contains(Categories(), c.Category), "category %q: use one of %s", c.Category, strings.Join(Categories(), ", "))
	refuse(c.Blame != BlameUser && c.Blame != BlameDependency && c.Blame != BlameUs, "blame %q: use user, dependency or us", c.Blame)
	refuse(c.HTTPStatus < 400 || c.HTTPStatus > 599, "HTTP status %d: use an error status, 400 to 599", c.HTTPStatus)
	refuse(!oneLine(c.Message), "the message must be one line of at most %d bytes, for users", maxLine)
	refuse(!oneLine(c.Remedy), "the remedy must be one line of at most %d bytes, for operators", maxLine)
	return errors.Join(problems...)
}

const (
	maxCodeName = 64
	maxLine     = 200
)

// ValidName reports whether name can be the name of a code.
func ValidName(name string) bool {
	if name == "" || len(name) > maxCodeName || name[0] < 'A' || name[0] > 'Z' {
		return false
	}
	return strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

func oneLine(text string) bool {
	return strings.TrimSpace(text) != "" && len(text) <= maxLine && clean(text) == text && !strings.ContainsAny(text, "\n\t")
}
