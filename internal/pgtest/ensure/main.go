// Ensure finds the PostgreSQL that the tests will start, installs it if it can, and says what is missing if it cannot.
package main

import (
	"fmt"
	"os"

	"github.com/holdfastdev/holdfast/internal/pgtest"
)

func main() {
	if os.Getenv("TEST_DATABASE_URL") != "" {
		fmt.Println("PostgreSQL: the server named by TEST_DATABASE_URL")
		return
	}
	found, err := pgtest.Ensure()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("PostgreSQL:", found.Postgres())
}
