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

// mountPolicies mounts the policies page.
func (c *Console) mountPolicies() {
	c.handlePage("/policies", policiesScreen)
	c.handleAction("/policies/remove", apikey.Admin, removePolicy)
}

// removePolicy removes the applied policy. It removes only the version that the visitor saw.
func removePolicy(q *request) (actionResult, error) {
	version, err := strconv.Atoi(q.text("version"))
	if err != nil || version < 1 {
		return actionResult{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the version is missing: reload the page and try again"}
	}
	return actionResult{text: "Policy removed. Within seconds workers use the file they were started with, or the policy in their code."}, q.operator.RemovePolicy(q.ctx, version, q.by())
}

// A policiesPage is the data of the policies page: what the policy in force decides, all codes, and the file.
type policiesPage struct {
	Tab  string
	Tabs []choice

	Applied bool // a policy is applied to the store
	Version int
	Since   time.Time
	Own     bool   // Config.Policies is set
	Text    string // the file
	Problem string // error of an applied policy that cannot be parsed

	Form  policiesForm
	Wrong string // error of the form
	Trial *policiesTrial
	Rules policiesRules
	Kinds []policiesKind
	Given *policy.Explanation // the source of each setting, for the chosen kind

	Find     string
	Category string
	Sorts    []string
	Codes    []policiesCode
	All      int
}

// A policiesForm is the failure to simulate, with suggestions.
type policiesForm struct {
	Kind, Code, Error, Owner, Dependency string
	Take, Outage                         string
	Kinds, Dependencies                  []string
	Codes                                []policiesOption
}

// A policiesOption is a code in the form.
type policiesOption struct {
	Name, Words string
	Here        bool
}

// A policiesKind is a row of the kinds table.
type policiesKind struct {
	Kind, Title, Link string
	Attempts          string
	Waits             string
	Ends              string
	Exceptions        int
	Here              bool
}

// Maximum bytes of an error text in the form, and of the file on the page.
const (
	policiesError = 2000
	policiesText  = 64 << 10
)

func policiesScreen(q *request) (page, error) {
	shown := policiesPage{Tab: q.text("tab")}
	for _, tab := range []choice{{Title: "Decisions"}, {Title: "Codes", Link: "codes"}, {Title: "File", Link: "file"}} {
		name := tab.Link
		tab.Link, tab.Here = q.withQuery("tab", name), name == shown.Tab
		shown.Tabs = append(shown.Tabs, tab)
	}
	if oneOf(shown.Tab, "", "codes", "file") != shown.Tab {
		return page{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("tab %.20q: use codes or file, or leave it out", shown.Tab)}
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

// policiesInForce returns the policy that workers follow: the applied one, or else Config.Policies. Nil is the built-in policy.
func (q *request) policiesInForce(shown *policiesPage) (*policy.Set, error) {
	own := q.c.cfg.Policies
	shown.Own, shown.Text = own != nil, truncate(own.Text(), policiesText)
	applied, err := q.operator.Policy(q.ctx)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return own, nil
	case err != nil:
		return nil, err
	}
	shown.Applied, shown.Version, shown.Since, shown.Text = true, applied.Version, applied.KeptAt, truncate(applied.Text, policiesText)
	known, err := q.taxonomy()
	if err != nil {
		return nil, err
	}
	set, _, err := policy.ParseLenient([]byte(applied.Text), known)
	if err != nil {
		shown.Problem = truncate(err.Error(), 2000)
		return own, nil
	}
	return set, nil
}

// policiesTry simulates the failure of the form.
func (q *request) policiesTry(shown *policiesPage, set *policy.Set) error {
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
		given, err := q.operator.ExplainPolicy(q.ctx, ops.PolicyQuestion{Kind: form.Kind, Code: form.Code, Owner: form.Owner, Dependency: form.Dependency})
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

// policiesForm reads the form and sets its suggestions: kinds of the file and of live workers, and their dependencies. It returns the dependency of each kind.
func (q *request) policiesForm(form *policiesForm, set *policy.Set) (depends map[string]string, err error) {
	*form = policiesForm{Kind: q.text("kind"), Code: q.text("code"), Error: truncate(q.text("error"), policiesError), Owner: q.text("owner"), Dependency: q.text("dependency"), Take: q.text("take"), Outage: q.text("outage")}
	workers, err := q.operator.Workers(q.ctx)
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
		words := "retryable"
		if !code.Retryable {
			words = "final"
		}
		form.Codes = append(form.Codes, policiesOption{code.Name, words, code.Name == form.Code})
	}
	return depends, nil
}

// policiesDistinct returns the sorted distinct names, at most a hundred.
func policiesDistinct(names []string) []string {
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	return names[:min(len(names), 100)]
}

// A policiesCode is a row of the codes table.
type policiesCode struct {
	failure.Code
	Source string // source of the definition; empty if built in
	Others int    // definitions that do not apply
	Jobs   string
	Try    string
}

// policiesCodes sets the codes that match the search.
func (q *request) policiesCodes(shown *policiesPage) error {
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
		if shown.Category != "" && code.Category != shown.Category || !containsAll(text, words) {
			continue
		}
		row := policiesCode{Code: code, Source: codeSource(one.Definition), Others: len(one.Others), Jobs: q.jobs(queryPart{"code", code.Name}.String())}
		row.Try, _ = link(q.link("/policies"), "code", code.Name) // complete pairs
		shown.Codes = append(shown.Codes, row)
	}
	return nil
}

// codeSource returns where a definition comes from; "" if it is built in.
func codeSource(d catalog.Definition) string {
	switch {
	case d.Source == catalog.BuiltIn:
		return ""
	case d.Source == catalog.Policy:
		return "policy"
	case d.Source == catalog.Worker && !d.Live:
		return strings.TrimSpace("former worker " + strings.Join(d.Versions, ", "))
	}
	return strings.TrimSpace("worker " + strings.Join(d.Versions, ", "))
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
