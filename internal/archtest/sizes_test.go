package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// The budgets. A thing that outgrows its budget has usually become two things.
const (
	fileLines     = 400
	functionLines = 60
	testLines     = 100 // for functions of tests: a story may be longer than a step
	nesting       = 4
	parameters    = 5
	methods       = 8
	rootNames     = 81 // the 81st is PlainText: which texts may be shown is one rule, for drafts, keys, subscriptions and both stores
)

func TestNothingOutgrowsItsBudget(t *testing.T) {
	for _, s := range files(t, ".go", ".sql") {
		report(t, tooBig(s))
	}
}

func tooBig(s source) (bad []complaint) {
	if n := strings.Count(s.text, "\n"); n > fileLines {
		bad = append(bad, s.complain(fileLines, "the file has %d lines, %d are the limit: split it by concern", n, fileLines))
	}
	if s.file == nil {
		return bad
	}
	limit := functionLines
	if s.isLaws() {
		limit = testLines
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if lines := s.last(n) - s.line(n.Type) + 1; lines > limit {
				bad = append(bad, s.complain(s.line(n.Type), "%s has %d lines, %d are the limit: name its steps and make them functions", n.Name.Name, lines, limit))
			}
			if n.Body != nil {
				bad = append(bad, tooDeep(s, n.Body, 0)...)
			}
		case *ast.FuncType:
			if count := n.Params.NumFields(); count > parameters {
				bad = append(bad, s.complain(s.line(n), "a function takes %d parameters, %d are the limit: give those that belong together a type", count, parameters))
			}
		case *ast.InterfaceType:
			if count := ownMethods(n); count > methods {
				bad = append(bad, s.complain(s.line(n), "an interface has %d methods, %d are the limit: split it into roles", count, methods))
			}
		}
		return true
	})
	return bad
}

// ownMethods leaves embedded interfaces out: a store made of roles is the plan.
func ownMethods(i *ast.InterfaceType) (n int) {
	for _, m := range i.Methods.List {
		n += len(m.Names)
	}
	return n
}

// tooDeep complains once about each statement that opens a block deeper than the budget. An else-if is as deep as its if.
func tooDeep(s source, n ast.Node, depth int) (bad []complaint) {
	ast.Inspect(n, func(inner ast.Node) bool {
		if inner == n || inner == nil || len(bad) > 0 {
			return inner == n
		}
		if !opensBlock(inner) {
			return true
		}
		deeper := depth + 1
		if chain, ok := n.(*ast.IfStmt); ok && chain.Else == inner {
			deeper = depth
		}
		if deeper > nesting {
			bad = append(bad, s.complain(s.line(inner), "this is nested %d deep, %d are the limit: return early or name the inner part", deeper, nesting))
			return false
		}
		bad = append(bad, tooDeep(s, inner, deeper)...)
		return false
	})
	return bad
}

func opensBlock(n ast.Node) bool {
	switch n.(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
		return true
	}
	return false
}

func TestTheRootPackageStaysAVocabularyOneCanLearn(t *testing.T) {
	var names []string
	for _, s := range files(t, ".go") {
		if s.room() == "." && !s.isTest() {
			names = append(names, vocabulary(s)...)
		}
	}
	if len(names) > rootNames {
		slices.Sort(names)
		t.Errorf("the root package exports %d names, %d are the limit: move what is not vocabulary to its room.\n%s", len(names), rootNames, strings.Join(names, " "))
	}
}

// vocabulary is what a reader has to learn: exported types, functions and variables. A typed constant belongs to its
// type and a method to its receiver; a block of plain constants, such as the limits of a draft, is learned as one.
func vocabulary(s source) (names []string) {
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = appendExported(names, d.Name)
			}
		case *ast.GenDecl:
			names = append(names, declared(d)...)
		}
	}
	return names
}

func declared(d *ast.GenDecl) (names []string) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names = appendExported(names, spec.Name)
		case *ast.ValueSpec:
			names = appendExported(names, spec.Names...)
		}
	}
	if d.Tok != token.CONST || len(names) == 0 {
		return names
	}
	if first := d.Specs[0].(*ast.ValueSpec); first.Type != nil {
		return nil
	}
	return names[:1]
}

func appendExported(names []string, idents ...*ast.Ident) []string {
	for _, i := range idents {
		if i.IsExported() {
			names = append(names, i.Name)
		}
	}
	return names
}
