// Command ensure finds or installs the programs that tests run, and says what is missing.
package main

import (
	"fmt"
	"os"

	"github.com/holdfastdev/holdfast/internal/testprograms"
)

func main() {
	for _, p := range testprograms.All {
		path, err := p.Ensure()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %s\n", p.Name, path)
	}
}
