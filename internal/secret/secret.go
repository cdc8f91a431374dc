// Package secret finds secrets by their names, where the process was given them, and hides them in texts that others see. No secret, and no path of a
// file that holds one, is ever in an error.
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

// FromEnvironment finds a secret in its variable, or in the file that the variable with _FILE at its end names.
func FromEnvironment(name string) (string, error) {
	variable := Variable(name)
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

// Hidden is what stands where a secret was.
const Hidden = "[secret]"

// minHidden is the shortest text that is looked for: shorter ones are in every other word.
const minHidden = 4

// Hide replaces secrets wherever they stand in a text, also as an address, JSON or base64 would spell them.
func Hide(text string, secrets ...string) string {
	var spelled []string
	for _, s := range secrets {
		quoted, _ := json.Marshal(s)
		spelled = append(spelled, s, strings.Trim(string(quoted), `"`), url.QueryEscape(s), url.PathEscape(s),
			base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)),
			base64.URLEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)))
	}
	// The longest first, lest a part of one be left.
	slices.SortFunc(spelled, func(a, b string) int { return len(b) - len(a) })
	for _, s := range spelled {
		if len(s) >= minHidden {
			text = strings.ReplaceAll(text, s, Hidden)
		}
	}
	return text
}
