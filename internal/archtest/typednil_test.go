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

// A nil pointer in an interface is not nil: `return postgres.Open(...)` in a function that returns an interface gives its caller a store that is
// not nil and panics when it is used. The caller's `if s.store != nil` does not help.
func TestNoNilPointerBecomesAnInterface(t *testing.T) {
	for _, module := range []string{".", "apps"} {
		for _, f := range typed(t, filepath.Join(root(t), module)) {
			ast.Inspect(f.file, func(n ast.Node) bool {
				report(t, f.typedNils(n))
				return true
			})
		}
	}
}

// A typedFile is a file whose expressions have types.
type typedFile struct {
	source
	info *types.Info
	sig  map[ast.Node]*types.Signature // the innermost function around each return statement
}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// typed checks the types of every package of a module. Imports are read from the export data of the build cache.
func typed(t *testing.T, dir string) (files []typedFile) {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./...")
	list.Dir, list.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	var ours []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
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

func (p listed) check(t *testing.T, set *token.FileSet, imports types.Importer) (files []typedFile) {
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

// typedNils finds pointers that may be nil, because they come beside an error, and are stored in an interface.
func (f typedFile) typedNils(n ast.Node) (bad []complaint) {
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
	got := f.besideAnError(from)
	if len(got) != len(into) {
		return nil
	}
	for i, what := range got {
		if _, isPointer := what.Underlying().(*types.Pointer); isPointer && into[i] != nil && types.IsInterface(into[i]) {
			bad = append(bad, f.complain(f.line(n), "beside an error the %s is nil, but the %s that it becomes is not: keep it in a variable, return nil when there is an error", what, into[i]))
		}
	}
	return bad
}

// besideAnError is the types of values of which the last is an error that may not be nil: those of one call, or of a list.
func (f typedFile) besideAnError(from []ast.Expr) (got []types.Type) {
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
