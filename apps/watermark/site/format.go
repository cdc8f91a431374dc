package site

import (
	"fmt"
	"mime"
	"strings"
	"time"
)

func formatSpan(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// formatChance returns a probability as a person reads it.
func formatChance(p float64) string {
	if p <= 0 || p < 1e-300 {
		return "less than 1 in 10^300"
	}
	return fmt.Sprintf("at most %.1g", p)
}

// disposition makes a browser store a file under a name.
func disposition(name string) string {
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}

// lower returns a state in lower case.
func lower(state any) string { return strings.ToLower(fmt.Sprint(state)) }
