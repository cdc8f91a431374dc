// Generate writes the dashboard and the alert rules. Run it in the folder telemetry.
package main

import (
	"fmt"
	"os"

	"github.com/holdfastdev/holdfast/telemetry"
)

func main() {
	for file, text := range map[string][]byte{
		"dashboard.json": telemetry.Dashboard(),
		"alerts.yaml":    telemetry.Rules(),
	} {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("wrote", file)
	}
}
