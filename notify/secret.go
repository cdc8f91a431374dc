package notify

import (
	"fmt"
	"os"
	"strings"
)

// fromEnvironment finds a secret where the process was given it. Neither it nor the file's path is ever in an error.
func fromEnvironment(name string) (string, error) {
	variable := "HOLDFAST_SECRET_" + strings.Map(func(c rune) rune {
		if c == '-' || c == '.' {
			return '_'
		}
		return c
	}, strings.ToUpper(name))
	if secret := os.Getenv(variable); secret != "" {
		return secret, nil
	}
	path := os.Getenv(variable + "_FILE")
	if path == "" {
		return "", fmt.Errorf("it is not there: set %s, or %s_FILE to a file that holds it", variable, variable)
	}
	body, err := os.ReadFile(path)
	if secret := strings.TrimSpace(string(body)); err == nil && secret != "" {
		return secret, nil
	}
	return "", fmt.Errorf("the file that %s_FILE names cannot be read, or is empty", variable)
}
