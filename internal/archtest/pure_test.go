package archtest

import (
	"go/ast"
	"testing"
)

func TestDecisionsKnowNeitherClockNorGoroutine(t *testing.T) {
	for _, s := range files(t, ".go") {
		if under(s.folder(), "failure") && !s.isTest() {
			report(t, impure(s))
		}
	}
}

var clockFunctions = map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true}

// impure finds go statements and calls that read the clock.
func impure(s source) (bad []violation) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			bad = append(bad, s.violation(s.line(n), "package failure must not start goroutines: return a value and let the engine act on it"))
		case *ast.SelectorExpr:
			if on, ok := n.X.(*ast.Ident); ok && on.Name == "time" && clockFunctions[n.Sel.Name] {
				bad = append(bad, s.violation(s.line(n), "package failure must not read the clock: take the time as an argument instead of time.%s", n.Sel.Name))
			}
		}
		return true
	})
	return bad
}
