package console

import (
	"net/http"
	"net/url"
	"time"
	_ "time/tzdata" // zones are known also where the machine knows none
)

// prefs are how a visitor likes pages. They are in a cookie that scripts may read and write: there is nothing in it to protect.
type prefs struct {
	Theme   string // light, dark; empty: the system's
	Zone    string // a time zone; empty: not chosen yet, UTC until then
	Density string // compact; empty: roomy
	Clock   string // absolute; empty: relative
	zone    *time.Location
}

const prefsCookie = "holdfast_prefs"

// A clock is a way of telling the time.
type clock struct {
	zone     *time.Location
	absolute bool
}

func (p prefs) clock() clock { return clock{p.zone, p.Clock == "absolute"} }

// prefsOf reads the cookie. What makes no sense in it is left out. Times are in UTC for a visitor who has not signed in: strangers choose no zone.
func prefsOf(r *http.Request, known bool) prefs {
	p := prefs{zone: time.UTC}
	cookie, err := r.Cookie(prefsCookie)
	if err != nil || len(cookie.Value) > 1024 {
		return p
	}
	said, err := url.ParseQuery(cookie.Value)
	if err != nil {
		return p
	}
	if !known {
		said.Del("zone")
	}
	return p.with(said)
}

// with takes over what makes sense.
func (p prefs) with(said url.Values) prefs {
	p.Theme = oneOf(said.Get("theme"), "light", "dark")
	p.Density = oneOf(said.Get("density"), "compact")
	p.Clock = oneOf(said.Get("clock"), "absolute")
	if zone, err := zoneOf(said.Get("zone")); err == nil {
		p.Zone, p.zone = said.Get("zone"), zone
	}
	return p
}

// text is the cookie's value.
func (p prefs) text() string {
	said := url.Values{}
	for name, value := range map[string]string{"theme": p.Theme, "zone": p.Zone, "density": p.Density, "clock": p.Clock} {
		if value != "" {
			said.Set(name, value)
		}
	}
	return said.Encode()
}

// keep has the browser remember them for a year.
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
