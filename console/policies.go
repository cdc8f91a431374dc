package console

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

// mountPolicies mounts what becomes of failures, and why.
func (c *Console) mountPolicies() {
	c.see("/policies", policiesScreen)
	c.do("/policies/remove", apikey.Admin, removePolicy)
}

// removePolicy has workers go back to what they were given. It removes the version that the visitor saw, and no other.
func removePolicy(q *ask) (done, error) {
	version, err := strconv.Atoi(q.text("version"))
	if err != nil || version < 1 {
		return done{}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "no version is named: open the page again, and remove what it shows"}
	}
	return done{text: "The policy is removed: workers go back, within seconds, to the file they were given at their start, or to what is written in their code."}, q.desk.RemovePolicy(q.ctx, version, q.by())
}

// A policiesPage shows the policy in force: what it does to a kind, every code there is, and the file as it was written.
type policiesPage struct {
	Tab  string
	Tabs []choice

	Applied bool // to the store, by a person
	Version int
	Since   time.Time
	Own     bool   // the application gave one with its console
	Text    string // as it was written
	Problem string // it cannot be read

	Form  policiesForm
	Wrong string // what is wrong with the form
	Trial *policiesTrial
	Rules policiesRules
	Kinds []policiesKind
	Given *policy.Explanation // where each setting comes from, for the kind that was chosen

	Find     string
	Category string
	Sorts    []string
	Codes    []policiesCode
	All      int
}

// A policiesForm is what is tried out.
type policiesForm struct {
	Kind, Code, Error, Owner, Dependency string
	Take, Outage                         string
	Kinds, Dependencies                  []string
	Codes                                []policiesOption
}

// A policiesOption is a code to choose.
type policiesOption struct {
	Name, Words string
	Here        bool
}

// A policiesKind is a kind in a line.
type policiesKind struct {
	Kind, Title, Link string
	Attempts          string
	Waits             string
	Ends              string
	Exceptions        int
	Here              bool
}

// How much of an error may be tried out, and how much of a file is shown.
const (
	policiesError = 2000
	policiesText  = 64 << 10
)

func policiesScreen(q *ask) (page, error) {
	shown := policiesPage{Tab: q.text("tab")}
	for _, tab := range []choice{{Title: "What becomes of a failure"}, {Title: "Codes", Link: "codes"}, {Title: "The file", Link: "file"}} {
		name := tab.Link
		tab.Link, tab.Here = q.otherwise("tab", name), name == shown.Tab
		shown.Tabs = append(shown.Tabs, tab)
	}
	if oneOf(shown.Tab, "", "codes", "file") != shown.Tab {
		return page{}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("tab %.20q: use codes, file, or none", shown.Tab)}
	}
	set, err := q.policiesInForce(&shown)
	if err != nil {
		return page{}, err
	}
	p := page{name: "policies", title: "Policies"}
	switch shown.Tab {
	case "codes":
		if err := q.policiesCodes(&shown); err != nil {
			return page{}, err
		}
	case "":
		if err := q.policiesTry(&shown, set); err != nil {
			return page{}, err
		}
		if shown.Wrong != "" {
			p.status = http.StatusBadRequest
		}
	}
	p.data = shown
	return p, nil
}

// policiesInForce is what workers follow: what was applied to the store, or else what the application gave; nil is the built-in one.
func (q *ask) policiesInForce(shown *policiesPage) (*policy.Set, error) {
	own := q.c.cfg.Policies
	shown.Own, shown.Text = own != nil, cut(own.Text(), policiesText)
	applied, err := q.desk.Policy(q.ctx)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return own, nil
	case err != nil:
		return nil, err
	}
	shown.Applied, shown.Version, shown.Since, shown.Text = true, applied.Version, applied.KeptAt, cut(applied.Text, policiesText)
	known, err := q.taxonomy()
	if err != nil {
		return nil, err
	}
	set, _, err := policy.ParseLenient([]byte(applied.Text), known)
	if err != nil {
		shown.Problem = cut(err.Error(), 2000)
		return own, nil
	}
	return set, nil
}

// policiesTry tries a failure out.
func (q *ask) policiesTry(shown *policiesPage, set *policy.Set) error {
	depends, err := q.policiesForm(&shown.Form, set)
	if err != nil {
		return err
	}
	known, err := q.taxonomy()
	if err != nil {
		return err
	}
	form := &shown.Form
	tried := policiesCase{set: set, taxonomy: known, kind: form.Kind, owner: form.Owner, code: form.Code, text: form.Error, dependency: form.Dependency, now: q.now, most: policiesTried}
	if tried.dependency == "" {
		tried.dependency = depends[form.Kind]
	}
	if shown.Wrong = tried.read(form); shown.Wrong == "" {
		trial := tried.try()
		shown.Trial = &trial
	}
	shown.Rules = q.policiesRules(tried)
	if form.Kind != "" && shown.Wrong == "" {
		given, err := q.desk.ExplainPolicy(q.ctx, ops.PolicyQuestion{Kind: form.Kind, Code: form.Code, Owner: form.Owner, Dependency: form.Dependency})
		if err != nil {
			return err
		}
		shown.Given = &given
	}
	for _, kind := range append([]string{""}, form.Kinds...) {
		shown.Kinds = append(shown.Kinds, q.policiesKind(tried, kind))
	}
	return nil
}

// policiesForm reads what is tried out, and finds what there is to choose: kinds of the file and of live workers, and what these call.
func (q *ask) policiesForm(form *policiesForm, set *policy.Set) (depends map[string]string, err error) {
	*form = policiesForm{Kind: q.text("kind"), Code: q.text("code"), Error: cut(q.text("error"), policiesError), Owner: q.text("owner"), Dependency: q.text("dependency"), Take: q.text("take"), Outage: q.text("outage")}
	workers, err := q.desk.Workers(q.ctx)
	if err != nil {
		return nil, err
	}
	depends = map[string]string{}
	kinds, called := set.Kinds(), set.Dependencies()
	for _, one := range workers {
		kinds = append(kinds, one.Kinds...)
		for kind, dependency := range one.Depends {
			depends[kind] = dependency
			called = append(called, dependency)
		}
	}
	form.Kinds, form.Dependencies = policiesDistinct(kinds), policiesDistinct(called)
	known, err := q.taxonomy()
	if err != nil {
		return nil, err
	}
	for _, code := range known.Codes() {
		words := "may be retried"
		if !code.Retryable {
			words = "final"
		}
		form.Codes = append(form.Codes, policiesOption{code.Name, words, code.Name == form.Code})
	}
	return depends, nil
}

// policiesDistinct are names in order, each once. There may be thousands: a page shows a hundred.
func policiesDistinct(names []string) []string {
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	return names[:min(len(names), 100)]
}

// A policiesCode is a code as the table shows it.
type policiesCode struct {
	failure.Code
	Source string // of the definition; empty: it is built in
	Others int    // definitions that do not apply
	Jobs   string
	Try    string
}

// policiesCodes lists the codes that a search finds.
func (q *ask) policiesCodes(shown *policiesPage) error {
	shown.Find, shown.Category, shown.Sorts = q.text("find"), q.text("category"), failure.Categories()
	known, err := q.codes()
	if err != nil {
		return err
	}
	words := strings.Fields(strings.ToLower(shown.Find))
	for _, one := range known {
		code := one.Code
		shown.All++
		text := strings.ToLower(strings.Join([]string{code.Name, code.Category, string(code.Blame), code.Message, code.Remedy}, " "))
		if shown.Category != "" && code.Category != shown.Category || !policiesHas(text, words) {
			continue
		}
		row := policiesCode{Code: code, Source: codeSource(one.Definition), Others: len(one.Others), Jobs: q.jobs(queryPart{"code", code.Name}.String())}
		row.Try, _ = link(q.link("/policies"), "code", code.Name) // a pair is a pair
		shown.Codes = append(shown.Codes, row)
	}
	return nil
}

// codeSource says where a definition comes from; nothing when it is built in.
func codeSource(d catalog.Definition) string {
	switch {
	case d.Source == catalog.BuiltIn:
		return ""
	case d.Source == catalog.Policy:
		return "the policy"
	case d.Source == catalog.Worker && !d.Live:
		return strings.TrimSpace("a worker that is gone " + strings.Join(d.Versions, ", "))
	}
	return strings.TrimSpace("worker " + strings.Join(d.Versions, ", "))
}

func policiesHas(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
