package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unknown returns an error for each variable that begins with HOLDFAST_ and is not a setting, with the most similar name that is.
func unknown(env map[string]string) error {
	var known []string
	for _, s := range Settings {
		known = append(known, s.Env())
		if s.Secret {
			known = append(known, s.Env()+fileSuffix)
		}
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		ours := strings.HasPrefix(name, prefix) && !slices.ContainsFunc(patterns, func(p string) bool { return strings.HasPrefix(name, p) })
		if !ours || slices.Contains(known, name) {
			continue
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
		problems = append(problems, fmt.Errorf("unknown environment variable %s: did you mean %s? See 'holdfast config', or unset it", name, nearest))
	}
	return errors.Join(problems...)
}

// distance returns the Levenshtein distance of two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
