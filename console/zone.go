package console

import (
	"errors"
	"regexp"
	"sync"
	"time"
)

// A zoneCache keeps the zones that visitors asked for, each under its one clean name.
type zoneCache struct {
	mu    sync.Mutex
	known map[string]*time.Location
}

// mostZones bounds the cache. The world has about 600 names; a zone beyond them is read again for each page.
const mostZones = 700

// zones are those met so far.
var zones zoneCache

var errZone = errors.New("no such time zone: use one like Europe/Berlin, or UTC")

// cleanZone is how the names of the IANA database are written. Go takes other spellings of a path to the same file too (Europe/./Berlin), and on some machines
// the folders posix and right, which hold every zone again.
var cleanZone = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*){0,2}$`)

// zoneOf finds a zone by its name in the IANA database. The zone of the server's machine is not offered.
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
	if len(zones.known) < mostZones {
		zones.known[name] = zone
	}
	return zone, nil
}
