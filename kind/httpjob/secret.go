package httpjob

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/jobkind"
	"github.com/holdfastdev/holdfast/internal/secret"
)

var reference = regexp.MustCompile(`\$\{secret:([A-Za-z0-9][A-Za-z0-9._-]{0,63})\}`)

// checkReferences refuses malformed references to secrets, which would be sent as they are.
func checkReferences(where, text string) error {
	if strings.Contains(reference.ReplaceAllString(text, ""), "${secret") {
		return jobkind.Refuse("%s: a secret without a proper name: write ${secret:NAME} with letters, digits and _ - .", where)
	}
	return nil
}

// FromEnvironment returns a secret from the environment if it may be sent to host, given as scheme://host or scheme://host:port. The variable
// HOLDFAST_SECRET_<NAME>_HOSTS lists the allowed hosts, separated by commas. A host without a scheme means https.
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
	return "", fmt.Errorf("it may not be sent to this host: add the host to %s, such as api.example.org", variable)
}

// maxEscapedSecret is the maximum length of a secret that is escaped in a URL.
const maxEscapedSecret = 3 * maxValue

// secrets are the secrets of one request.
type secrets struct {
	find  func(name, host string) (string, error)
	host  string
	known []string // the values used, to hide them in texts
}

// put replaces each reference in text by its secret.
func (s *secrets) put(text string, escape func(string) string) (string, error) {
	var problem error
	text = reference.ReplaceAllStringFunc(text, func(found string) string {
		name := reference.FindStringSubmatch(found)[1]
		value, err := s.find(name, s.host)
		if err == nil && !plain(value) {
			err = errors.New("its value is not one line of text")
		}
		if err != nil {
			problem = failure.WithCode(fmt.Errorf("secret %s: %w", name, err), "SECRET_MISSING")
			return ""
		}
		s.known = append(s.known, value)
		return escape(value)
	})
	return text, problem
}

// hide removes the secrets from a text.
func (s *secrets) hide(text string) string { return secret.Hide(text, s.known...) }

// originOf returns the origin of a target, as hosts of secrets are written.
func originOf(u *url.URL) string { return u.Scheme + "://" + dependencyOf(u) }
