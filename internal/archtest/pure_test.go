package archtest

import (
	"go/ast"
	"testing"
)

func TestDecisionsKnowNeitherClockNorGoroutine(t *testing.T) {
	for _, s := range files(t, ".go") {
		if under(s.room(), "failure") && !s.isTest() {
			report(t, impure(s))
		}
	}
}

var clock = map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true}

func impure(s source) (bad []complaint) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			bad = append(bad, s.complain(s.line(n), "a decision starts no goroutine: return a value and let the engine act on it"))
		case *ast.SelectorExpr:
			if on, ok := n.X.(*ast.Ident); ok && on.Name == "time" && clock[n.Sel.Name] {
				bad = append(bad, s.complain(s.line(n), "a decision knows no clock: take the time as an argument instead of time.%s", n.Sel.Name))
			}
		}
		return true
	})
	return bad
}
