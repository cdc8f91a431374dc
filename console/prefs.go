package console

import (
	"net/http"
	"net/url"
	"time"
	_ "time/tzdata" // time zones on machines without a zone database
)

// prefs are the display preferences of a visitor. They are in a cookie that scripts may read and write, because it holds nothing secret.
type prefs struct {
	Theme   string // light or dark; empty: follow the system
	Zone    string // a time zone; empty: none chosen, UTC
	Density string // compact; empty: comfortable
	Clock   string // absolute; empty: relative
	zone    *time.Location
}

const prefsCookie = "holdfast_prefs"

// A clock formats times in a zone, relative or absolute.
type clock struct {
	zone     *time.Location
	absolute bool
}

func (p prefs) clock() clock { return clock{p.zone, p.Clock == "absolute"} }

// prefsOf reads the cookie and ignores invalid values. For a visitor who is not signed in times are in UTC, so that unknown clients cannot fill the zone cache.
func prefsOf(r *http.Request, known bool) prefs {
	p := prefs{zone: time.UTC}
	cookie, err := r.Cookie(prefsCookie)
	if err != nil || len(cookie.Value) > 1024 {
		return p
	}
	values, err := url.ParseQuery(cookie.Value)
	if err != nil {
		return p
	}
	if !known {
		values.Del("zone")
	}
	return p.with(values)
}

// with returns the preferences with the valid values applied.
func (p prefs) with(values url.Values) prefs {
	p.Theme = oneOf(values.Get("theme"), "light", "dark")
	p.Density = oneOf(values.Get("density"), "compact")
	p.Clock = oneOf(values.Get("clock"), "absolute")
	if zone, err := zoneOf(values.Get("zone")); err == nil {
		p.Zone, p.zone = values.Get("zone"), zone
	}
	return p
}

// text returns the cookie value.
func (p prefs) text() string {
	values := url.Values{}
	for name, value := range map[string]string{"theme": p.Theme, "zone": p.Zone, "density": p.Density, "clock": p.Clock} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values.Encode()
}

// keep sets the cookie for a year.
func (p prefs) keep(w http.ResponseWriter, prefix string) {
	http.SetCookie(w, &http.Cookie{Name: prefsCookie, Value: p.text(), Path: prefix + "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteStrictMode})
}

func oneOf(given string, known ...string) string {
	for _, one := range known {
		if given == one {
			return one
		}
	}
	return ""
}
