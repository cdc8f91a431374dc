// Command ensure finds or installs the programs that tests run, or only those that its arguments name, and says what is missing.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/holdfastdev/holdfast/internal/testprograms"
)

func main() {
	for _, p := range testprograms.All {
		if len(os.Args) > 1 && !slices.Contains(os.Args[1:], p.Name) {
			continue
		}
		path, err := p.Ensure()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %s\n", p.Name, path)
	}
}
