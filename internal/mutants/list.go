package main

// A Mutant is one deliberate defect, and the test that must not let it pass.
type Mutant struct {
	Name    string
	Breaks  string // which promise
	Patches []Patch
	Test    []string // arguments of go test; the package comes last
}

// A Patch replaces a piece of text that occurs once in a file.
type Patch struct{ File, Old, New string }

var mutants = []Mutant{}
