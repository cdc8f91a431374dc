package blob

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// File systems allow names of 255 bytes. The name of an unfinished file is longer than its key.
const (
	maxKey    = 200
	maxRandom = 32 // what the name of an unfinished file adds
)

// checkKey refuses keys that could leave the storage, or mean another file on another system: Windows drops trailing dots and ignores case.
func checkKey(key string) error { return checkUpTo(key, maxKey) }

// checkListed also accepts the keys of unfinished files, which are listed and can be deleted.
func checkListed(key string) error {
	if isPart(key) {
		return checkUpTo(visibleKey(key), maxKey+maxRandom)
	}
	return checkKey(key)
}

func checkUpTo(key string, limit int) error {
	switch {
	case key == "":
		return invalid(errors.New("the key of a file is empty"))
	case len(key) > limit:
		return invalid(fmt.Errorf("a key has %d bytes, the limit is %d", len(key), limit))
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment[0] == '.' || segment[len(segment)-1] == '.' || strings.ContainsFunc(segment, isInvalid) {
			return invalid(fmt.Errorf("%.60q is not a valid key: use segments of lower-case letters, digits, dots, dashes and underscores, separated by slashes; no segment may begin or end with a dot", key))
		}
	}
	return nil
}

func invalid(err error) error { return kindError{err, []error{ErrInvalid}} }

func isInvalid(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}

// partKey returns the name of an unfinished file: a dot, the name of the file, a dot and random characters. Because of the first dot, no key can be equal to it.
func partKey(key, random string) string {
	dir, base := path.Split(key)
	return dir + "." + base + "." + random
}

func isPart(key string) bool { return strings.HasPrefix(path.Base(key), ".") }

// visibleKey returns the key of an unfinished file without its leading dot.
func visibleKey(key string) string {
	dir, base := path.Split(key)
	return dir + strings.TrimPrefix(base, ".")
}

// compareKeys orders keys as fs.WalkDir does: segment by segment.
func compareKeys(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
