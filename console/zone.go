package console

import (
	"errors"
	"sync"
	"time"
)

// A zoneCache knows the zones that were asked for: so equal names are one and the same zone. There are as many as the world has.
type zoneCache struct {
	mu    sync.Mutex
	known map[string]*time.Location
}

// zones are those met so far.
var zones zoneCache

var errZone = errors.New("no such time zone: use one like Europe/Berlin, or UTC")

// zoneOf finds a zone by its name. The machine's own is nobody's business.
func zoneOf(name string) (*time.Location, error) {
	switch name {
	case "", "Local":
		return nil, errZone
	case "UTC":
		return time.UTC, nil
	}
	zones.mu.Lock()
	defer zones.mu.Unlock()
	if zone := zones.known[name]; zone != nil {
		return zone, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errZone
	}
	if zones.known == nil {
		zones.known = map[string]*time.Location{}
	}
	zones.known[name] = zone
	return zone, nil
}
