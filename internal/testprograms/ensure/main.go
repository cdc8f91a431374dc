// Command ensure finds or installs the programs that tests run, and says what is missing. With arguments it does so only for the programs with these names.
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
