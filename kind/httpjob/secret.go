package httpjob

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/secret"
	"github.com/holdfastdev/holdfast/kind"
)

var reference = regexp.MustCompile(`\$\{secret:([A-Za-z0-9][A-Za-z0-9._-]{0,63})\}`)

// checkReferences refuses what looks like the place of a secret and is none: it would be sent as it stands.
func checkReferences(where, text string) error {
	if strings.Contains(reference.ReplaceAllString(text, ""), "${secret") {
		return kind.Refuse("%s: a secret without a proper name: write ${secret:NAME} with letters, digits and _ - .", where)
	}
	return nil
}

// FromEnvironment finds a secret that may be sent to a host, given as scheme://host or scheme://host:port. Which hosts those are is in the variable
// HOLDFAST_SECRET_<NAME>_HOSTS, separated by commas: https is meant, unless http:// is written before one.
func FromEnvironment(name, host string) (string, error) {
	variable := secret.Variable(name) + "_HOSTS"
	for entry := range strings.SplitSeq(os.Getenv(variable), ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if entry != "" && !strings.Contains(entry, "://") {
			entry = "https://" + entry
		}
		if entry == host {
			return secret.FromEnvironment(name)
		}
	}
	return "", fmt.Errorf("it may not be sent there: name the host in %s, such as api.example.org", variable)
}

// maxSpelled is how long a secret may be that stands escaped in an address.
const maxSpelled = 3 * maxValue

// secrets are those of one call.
type secrets struct {
	find  func(name, host string) (string, error)
	host  string
	known []string // as they were found
}

// put replaces each reference by its secret.
func (s *secrets) put(text string, escape func(string) string) (string, error) {
	var problem error
	text = reference.ReplaceAllStringFunc(text, func(found string) string {
		name := reference.FindStringSubmatch(found)[1]
		value, err := s.find(name, s.host)
		if err == nil && !plain(value) {
			err = errors.New("it is not one line of text")
		}
		if err != nil {
			problem = failure.WithCode(fmt.Errorf("the secret %s: %w", name, err), "SECRET_MISSING")
			return ""
		}
		s.known = append(s.known, value)
		return escape(value)
	})
	return text, problem
}

// hide makes a text fit to be seen.
func (s *secrets) hide(text string) string { return secret.Hide(text, s.known...) }

// originOf is a target as secrets know it.
func originOf(u *url.URL) string { return u.Scheme + "://" + dependencyOf(u) }
