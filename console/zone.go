package console

import (
	"errors"
	"regexp"
	"sync"
	"time"
)

// A zoneCache caches the zones that visitors use, each under one canonical name.
type zoneCache struct {
	mu    sync.Mutex
	known map[string]*time.Location
}

// maxZones bounds the cache. The IANA database has about 600 names; a zone beyond the limit is loaded for each page.
const maxZones = 700

// zones holds the zones loaded so far.
var zones zoneCache

var errZone = errors.New("no such time zone: use one like Europe/Berlin, or UTC")

// cleanZone matches names as the IANA database writes them. Go also accepts other spellings of a path to the same file (Europe/./Berlin), and on some machines
// the folders posix and right, which contain every zone again.
var cleanZone = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*){0,2}$`)

// zoneOf returns a zone by its name in the IANA database. Local, the zone of the server, is refused.
func zoneOf(name string) (*time.Location, error) {
	switch {
	case name == "UTC":
		return time.UTC, nil
	case name == "Local" || len(name) > 40 || !cleanZone.MatchString(name):
		return nil, errZone
	}
	zones.mu.Lock()
	zone := zones.known[name]
	zones.mu.Unlock()
	if zone != nil {
		return zone, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errZone
	}
	zones.mu.Lock()
	defer zones.mu.Unlock()
	if zones.known == nil {
		zones.known = map[string]*time.Location{}
	}
	if len(zones.known) < maxZones {
		zones.known[name] = zone
	}
	return zone, nil
}
