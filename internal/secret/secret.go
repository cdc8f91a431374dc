// Package secret finds secrets by name in the environment of the process, and hides them in texts that others see. No error contains a secret or the path of a
// file that holds one.
package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Variable is the environment variable of a secret.
func Variable(name string) string {
	return "HOLDFAST_SECRET_" + strings.Map(func(c rune) rune {
		if c == '-' || c == '.' {
			return '_'
		}
		return c
	}, strings.ToUpper(name))
}

// FromEnvironment reads a secret from its variable, or from the file that the variable with the suffix _FILE names.
func FromEnvironment(name string) (string, error) {
	variable := Variable(name)
	if secret := os.Getenv(variable); secret != "" {
		return secret, nil
	}
	path := os.Getenv(variable + "_FILE")
	if path == "" {
		return "", fmt.Errorf("it is not set: set %s, or %s_FILE to the path of a file that contains it", variable, variable)
	}
	body, err := os.ReadFile(path)
	if secret := strings.TrimSpace(string(body)); err == nil && secret != "" {
		return secret, nil
	}
	return "", fmt.Errorf("the file in %s_FILE cannot be read, or is empty", variable)
}

// Hidden replaces a secret in a text.
const Hidden = "[secret]"

// minHidden is the length of the shortest secret that is hidden: shorter ones occur in ordinary words.
const minHidden = 4

// Hide replaces secrets in a text, also in the forms that URLs, JSON and base64 give them.
func Hide(text string, secrets ...string) string {
	var spelled []string
	for _, s := range secrets {
		quoted, _ := json.Marshal(s)
		spelled = append(spelled, s, strings.Trim(string(quoted), `"`), url.QueryEscape(s), url.PathEscape(s),
			base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)),
			base64.URLEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)))
	}
	// The longest first, so that no part of a longer form is left.
	slices.SortFunc(spelled, func(a, b string) int { return len(b) - len(a) })
	for _, s := range spelled {
		if len(s) >= minHidden {
			text = strings.ReplaceAll(text, s, Hidden)
		}
	}
	return text
}
