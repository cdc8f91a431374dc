package archtest

import (
	"go/ast"
	"testing"
)

// The limits. Code that exceeds one usually does two things. They show drift and are no aim in themselves: do not move complexity to where no limit counts it, such
// as into the fields of a receiver (TestLargeTypesAreListed lists those).
const (
	functionLines     = 60
	testFunctionLines = 100 // for functions in test code: a scenario may be longer than a step
	nestingDepth      = 4
	parameterCount    = 5
	interfaceMethods  = 12
)

func TestFunctionsAndInterfacesStayWithinTheirLimits(t *testing.T) {
	for _, s := range files(t, ".go") {
		report(t, tooBig(s))
	}
}

func tooBig(s source) (bad []violation) {
	limit := functionLines
	if s.isTestCode() {
		limit = testFunctionLines
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if lines := s.last(n) - s.line(n.Type) + 1; lines > limit {
				bad = append(bad, s.violation(s.line(n.Type), "%s has %d lines, the limit is %d: name its steps and make them functions", n.Name.Name, lines, limit))
			}
			if n.Body != nil {
				bad = append(bad, tooDeep(s, n.Body, 0)...)
			}
		case *ast.FuncType:
			if count := n.Params.NumFields(); count > parameterCount {
				bad = append(bad, s.violation(s.line(n), "a function takes %d parameters, the limit is %d: make a type of those that belong together", count, parameterCount))
			}
		case *ast.InterfaceType:
			if count := ownMethods(n); count > interfaceMethods {
				bad = append(bad, s.violation(s.line(n), "an interface has %d methods, the limit is %d: split it into roles", count, interfaceMethods))
			}
		}
		return true
	})
	return bad
}

// ownMethods counts the methods that an interface declares itself. Embedded interfaces do not count: a store is composed of role interfaces.
func ownMethods(i *ast.InterfaceType) (n int) {
	for _, m := range i.Methods.List {
		n += len(m.Names)
	}
	return n
}

// tooDeep finds statements that open a block deeper than the limit. An else-if is as deep as its if.
func tooDeep(s source, n ast.Node, depth int) (bad []violation) {
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
		if deeper > nestingDepth {
			bad = append(bad, s.violation(s.line(inner), "this is nested %d deep, the limit is %d: return early, or make the inner part a function", deeper, nestingDepth))
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
