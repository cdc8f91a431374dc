package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// An Access is how a plan reaches rows of a table.
type Access struct {
	Table string   // without the prefix holdfast_
	Keys  []string // the columns by which rows are found; none: all rows are read
	First bool     // only the first row is read
}

func (a Access) String() string {
	switch {
	case len(a.Keys) > 0:
		return a.Table + "(" + strings.Join(a.Keys, ",") + ")"
	case a.First:
		return a.Table + "(first)"
	}
	return a.Table + "(all)"
}

// A Plan is how a database would run a statement.
type Plan struct {
	Accesses []Access
	Sorted   bool   // it sorts or stores an unbounded number of rows
	Text     string // as the database shows it, for the message of a failure
}

// Plans are the expected plans of statements. A table is reached by key: "ready(lane,priority) job(id)" allows these and anything more exact.
// "(first)" reads only whether there is a row, and "sorted" allows to sort an unbounded number of rows. "(all)" is for tables with one row for each
// batch or claimed job: there are never many.
type Plans struct {
	Want map[string]string // by the statement's name; empty: it only inserts rows, or reads small tables
	Free map[string]string // why a statement may read whole tables, by its name or, with a star, by its prefix
}

var (
	small  = strings.Fields("lane kind hold worker migration") // one row for each name that people chose
	inHand = strings.Fields("batch leased member cancel")      // one row for each batch or claimed job
)

// Check compares the plan of every statement with the expected one.
func (p Plans) Check(t testing.TB, texts map[string]string, explain func(name, text string) Plan) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(p.Want)) {
		if _, there := texts[name]; !there {
			t.Errorf("no statement is called %q: take it out of the expected plans", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		want, known := p.Want[name]
		switch {
		case known:
			for _, complaint := range judge(want, explain(name, texts[name])) {
				t.Errorf("statement %q: %s", name, complaint)
			}
		case !p.free(name):
			plan := explain(name, texts[name])
			t.Errorf("statement %q has no expected plan: add it to the table, as %q if that is correct, or with the reason why it may read whole tables", name, plan.short())
		}
	}
}

func (p Plans) free(name string) bool {
	if p.Free[name] != "" {
		return true
	}
	for beginning := range p.Free {
		if begins, starred := strings.CutSuffix(beginning, "*"); starred && strings.HasPrefix(name, begins) {
			return true
		}
	}
	return false
}

// judge returns what is wrong with a plan.
func judge(want string, plan Plan) (complaints []string) {
	allowed := strings.Fields(want)
	for _, a := range plan.Accesses {
		switch {
		case slices.Contains(small, a.Table):
		case len(a.Keys) == 0 && !a.First && !slices.Contains(inHand, a.Table):
			complaints = append(complaints, fmt.Sprintf("it reads all of holdfast_%s, which grows without end: give it a key to search by\n%s", a.Table, plan.Text))
		case !slices.ContainsFunc(allowed, a.satisfies):
			complaints = append(complaints, fmt.Sprintf("it reaches %v, expected is %q: find out what took its index away, or change the table of plans\n%s", a, want, plan.Text))
		}
	}
	if plan.Sorted && !slices.Contains(allowed, "sorted") {
		complaints = append(complaints, fmt.Sprintf("it puts rows in order, or aside, without a limit: let an index give the order\n%s", plan.Text))
	}
	return complaints
}

// satisfies reports whether an access is at least as exact as "table(key,key)".
func (a Access) satisfies(written string) bool {
	table, keys, _ := strings.Cut(strings.TrimSuffix(written, ")"), "(")
	if table != a.Table {
		return false
	}
	if keys == "all" || keys == "first" {
		return len(a.Keys) == 0 && a.First == (keys == "first")
	}
	for key := range strings.SplitSeq(keys, ",") {
		if !slices.Contains(a.Keys, key) {
			return false
		}
	}
	return true
}

// short is the plan in the form of an expected one.
func (p Plan) short() string {
	var parts []string
	for _, a := range p.Accesses {
		if word := a.String(); !slices.Contains(small, a.Table) && !slices.Contains(parts, word) {
			parts = append(parts, word)
		}
	}
	if p.Sorted {
		parts = append(parts, "sorted")
	}
	return strings.Join(parts, " ")
}
