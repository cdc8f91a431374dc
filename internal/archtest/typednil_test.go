package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A nil pointer in an interface is not nil: `return postgres.Open(...)` in a function that returns an interface gives its caller, on an error, a store that is not
// nil and panics when it is used. The caller's `if s.store != nil` does not help.
func TestNoNilPointerBecomesAnInterface(t *testing.T) {
	for _, module := range checkedModules {
		for _, f := range typedFiles(t, filepath.Join(root(t), module)) {
			ast.Inspect(f.file, func(n ast.Node) bool {
				report(t, f.typedNils(n))
				return true
			})
		}
	}
}

// A typedFile is a type-checked file.
type typedFile struct {
	source
	info *types.Info
	sig  map[ast.Node]*types.Signature // the innermost function around each return statement
}

// A listedPackage is one package in the output of `go list -json`.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// typedFiles type-checks every package of a module. Imports are read from the export data of the build cache.
func typedFiles(t *testing.T, dir string) (files []typedFile) {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./...")
	list.Dir, list.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	said := new(bytes.Buffer)
	list.Stderr = said
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	exports := map[string]string{}
	var ours []listedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			ours = append(ours, p)
		}
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range ours {
		files = append(files, p.check(t, set, imports)...)
	}
	return files
}

func (p listedPackage) check(t *testing.T, set *token.FileSet, imports types.Importer) (files []typedFile) {
	t.Helper()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
		path, _ := filepath.Rel(root(t), filepath.Join(p.Dir, name))
		files = append(files, typedFile{source{path: filepath.ToSlash(path), set: set, file: file}, info, map[ast.Node]*types.Signature{}})
	}
	if _, err := (&types.Config{Importer: imports}).Check(p.ImportPath, set, parsed, info); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		f.enclose(f.file, nil)
	}
	return files
}

// enclose finds the function around each return statement below a node.
func (f typedFile) enclose(n ast.Node, around *types.Signature) {
	ast.Inspect(n, func(below ast.Node) bool {
		switch below := below.(type) {
		case *ast.FuncDecl:
			if obj := f.info.Defs[below.Name]; below.Body != nil && obj != nil {
				f.enclose(below.Body, obj.Type().(*types.Signature))
			}
			return false
		case *ast.FuncLit:
			sig, _ := f.info.Types[below].Type.(*types.Signature)
			f.enclose(below.Body, sig)
			return false
		case *ast.ReturnStmt:
			f.sig[below] = around
		}
		return true
	})
}

// typedNils finds pointers that are returned together with an error, so that they may be nil, and are stored in an interface.
func (f typedFile) typedNils(n ast.Node) (bad []violation) {
	var from []ast.Expr
	var into []types.Type
	switch n := n.(type) {
	case *ast.ReturnStmt:
		if sig := f.sig[n]; sig != nil {
			from = n.Results
			for v := range sig.Results().Variables() {
				into = append(into, v.Type())
			}
		}
	case *ast.AssignStmt:
		if len(n.Rhs) == 1 {
			from = n.Rhs
			for _, to := range n.Lhs {
				into = append(into, f.typeOf(to))
			}
		}
	}
	got := f.withError(from)
	if len(got) != len(into) {
		return nil
	}
	for i, what := range got {
		if _, isPointer := what.Underlying().(*types.Pointer); isPointer && into[i] != nil && types.IsInterface(into[i]) {
			bad = append(bad, f.violation(f.line(n), "with an error the %s is nil, but the %s that it is stored in is not: assign it to a variable and return nil when there is an error", what, into[i]))
		}
	}
	return bad
}

// withError returns the types of a list of values, or of the results of one call, if the last of them is an error that may be non-nil. Otherwise it returns nil.
func (f typedFile) withError(from []ast.Expr) (got []types.Type) {
	switch len(from) {
	case 0:
		return nil
	case 1:
		tuple, ok := f.info.Types[from[0]].Type.(*types.Tuple)
		if !ok {
			return nil
		}
		for v := range tuple.Variables() {
			got = append(got, v.Type())
		}
	default:
		if last, ok := from[len(from)-1].(*ast.Ident); !ok || last.Name == "nil" {
			return nil
		}
		for _, e := range from {
			got = append(got, f.typeOf(e))
		}
	}
	if got[len(got)-1].String() != "error" {
		return nil
	}
	return got
}

func (f typedFile) typeOf(e ast.Expr) types.Type {
	if id, ok := e.(*ast.Ident); ok {
		if id.Name == "_" {
			return nil
		}
		if obj := f.info.Defs[id]; obj != nil {
			return obj.Type()
		}
		if obj := f.info.Uses[id]; obj != nil {
			return obj.Type()
		}
	}
	return f.info.Types[e].Type
}
