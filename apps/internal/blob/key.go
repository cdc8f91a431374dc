package blob

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Names of parts are longer than keys, and file systems take 255 bytes.
const (
	maxKey    = 200
	maxRandom = 32 // what a part adds
)

// checkKey refuses what could lead out of the place, or be read differently elsewhere: Windows drops dots at the end and ignores case.
func checkKey(key string) error { return checkUpTo(key, maxKey) }

// checkListed also lets the keys of parts pass, since those are listed and may be deleted.
func checkListed(key string) error {
	if isPart(key) {
		return checkUpTo(shown(key), maxKey+maxRandom)
	}
	return checkKey(key)
}

func checkUpTo(key string, most int) error {
	switch {
	case key == "":
		return errors.New("a file needs a key")
	case len(key) > most:
		return fmt.Errorf("a key of %d bytes: %d are the limit", len(key), most)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment[0] == '.' || segment[len(segment)-1] == '.' || strings.ContainsFunc(segment, odd) {
			return fmt.Errorf("%.60q is no key: use segments of lower-case letters, digits, dots, dashes and underscores with slashes between them, none beginning or ending with a dot", key)
		}
	}
	return nil
}

func odd(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}

// A part is a file that is being written. Its name is the file's behind a dot, so that no key can be one, and before something random.
func partKey(key, random string) string {
	dir, base := path.Split(key)
	return dir + "." + base + "." + random
}

func isPart(key string) bool { return strings.HasPrefix(path.Base(key), ".") }

// shown is the key without what makes it a part's.
func shown(key string) string {
	dir, base := path.Split(key)
	return dir + strings.TrimPrefix(base, ".")
}

// compareKeys orders as a walk through folders does: name by name.
func compareKeys(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
