package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// exportedNames is how many names each public package may export: types, functions, variables and constants, each counted by itself. Methods and fields belong to
// their type and do not count. Every name is a promise to users of the library: lower a number when a package shrinks, and raise one only for a name that users need.
var exportedNames = map[string]int{
	".":                   53,
	"client":              5,
	"apikey":              11,
	"console":             4,
	"duty":                10,
	"engine":              23,
	"failure":             77,
	"failure/breaker":     17,
	"failure/catalog":     17,
	"failure/policy":      29,
	"failure/redrive":     21,
	"holdfasttest":        14,
	"kind/execjob":        10,
	"kind/httpjob":        13,
	"notify":              16,
	"notify/mail":         14,
	"notify/nats":         4,
	"notify/sse":          4,
	"notify/subscription": 6,
	"notify/webhook":      5,
	"ops":                 61,
	"schedule":            8,
	"server":              12,
	"store":               89,
	"store/anystore":      5,
	"store/postgres":      4,
	"store/sqlite":        7,
	"store/storetest":     23,
	"telemetry":           10,
	"telemetry/export":    2,
	"worker":              4,
}

func TestPublicPackagesExportNoMoreNamesThanTheTableAllows(t *testing.T) {
	found := map[string][]string{}
	for _, s := range files(t, ".go") {
		if isPublic(s) {
			found[s.folder()] = append(found[s.folder()], exported(s)...)
		}
	}
	for folder, names := range found {
		slices.Sort(names)
		switch most, ok := exportedNames[folder]; {
		case !ok:
			t.Errorf("the public package %s has no line in exportedNames: add {%q: %d} to internal/archtest/surface_test.go, or move the package to internal", folder, folder, len(names))
		case len(names) > most:
			t.Errorf("%s exports %d names, the table allows %d: unexport what users do not need, or move it to another package.\n%s", folder, len(names), most, strings.Join(names, " "))
		case len(names) < most:
			t.Logf("%s exports %d names: lower its line in exportedNames from %d", folder, len(names), most)
		}
	}
	for folder := range exportedNames {
		if found[folder] == nil {
			t.Errorf("exportedNames has a line for %s, which is no public package: remove the line", folder)
		}
	}
}

// isPublic reports whether users of the library can import a file's package.
func isPublic(s source) bool {
	return !s.isTest() && s.file.Name.Name != "main" && !slices.Contains(strings.Split(s.folder(), "/"), "internal") && !under(s.path, "apps") && !under(s.path, "examples")
}

// exported lists the exported names that a file declares at package level.
func exported(s source) (names []string) {
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = appendExported(names, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = appendExported(names, spec.Name)
				case *ast.ValueSpec:
					names = appendExported(names, spec.Names...)
				}
			}
		}
	}
	return names
}

func appendExported(names []string, idents ...*ast.Ident) []string {
	for _, i := range idents {
		if i.IsExported() {
			names = append(names, i.Name)
		}
	}
	return names
}

// Above these numbers a type is listed. It often holds a second type.
const (
	listedFields  = 15
	listedMethods = 25
)

// TestLargeTypesAreListed logs types with many fields or methods and does not fail: a limit on functions alone moves complexity into receivers, and this shows
// where. Run it with -v.
func TestLargeTypesAreListed(t *testing.T) {
	types := map[string]*typeSize{}
	for _, s := range files(t, ".go") {
		if !s.isTestCode() {
			measureTypes(s, types)
		}
	}
	for _, line := range largeTypes(types) {
		t.Log(line)
	}
}

// A typeSize counts what a type has. Embedded types count as one field each.
type typeSize struct {
	name            string // package folder and type
	path            string
	line            int
	fields, methods int
}

func measureTypes(s source, types map[string]*typeSize) {
	of := func(name string) *typeSize {
		key := s.folder() + "." + name
		if types[key] == nil {
			types[key] = &typeSize{name: key}
		}
		return types[key]
	}
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				of(receiverType(d.Recv.List[0].Type)).methods++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					size := of(spec.Name.Name)
					size.path, size.line, size.fields = s.path, s.line(spec), countFields(spec.Type)
				}
			}
		}
	}
}

func countFields(e ast.Expr) (n int) {
	st, ok := e.(*ast.StructType)
	if !ok {
		return 0
	}
	for _, f := range st.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

func receiverType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverType(e.X)
	case *ast.IndexExpr:
		return receiverType(e.X)
	case *ast.IndexListExpr:
		return receiverType(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func largeTypes(types map[string]*typeSize) (lines []string) {
	for _, size := range types {
		if size.fields > listedFields || size.methods > listedMethods {
			lines = append(lines, fmt.Sprintf("%s:%d: %s has %d fields and %d methods", size.path, size.line, size.name, size.fields, size.methods))
		}
	}
	slices.Sort(lines)
	return lines
}
