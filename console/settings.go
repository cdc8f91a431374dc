package console

import (
	"net/http"
	"net/url"

	"github.com/holdfastdev/holdfast/apikey"
)

// mountSettings mounts the settings page. Saving changes only a cookie, so every visitor may do it.
func (c *Console) mountSettings() {
	c.handlePage("/settings", settingsScreen)
	c.mux.HandleFunc("POST /settings", c.keepSettings)
}

// A settingsPage is the data of the settings page.
type settingsPage struct {
	Groups []settingsGroup
	Zone   string
	Zones  []string
	May    string // what the scope of the visitor allows
}

// A settingsGroup is one setting.
type settingsGroup struct {
	Name, Title, Text string
	Choices           []settingsChoice
}

// A settingsChoice is one value of a setting.
type settingsChoice struct {
	Value, Title, Text string
	Here               bool
}

func settingsScreen(q *request) (page, error) {
	p := q.prefs
	shown := settingsPage{Zone: p.Zone, Zones: settingsZones, May: settingsScopes[q.visitor.Scope]}
	shown.Groups = []settingsGroup{
		{"theme", "Theme", "", []settingsChoice{
			{"", "System", "Same as the device", p.Theme == ""}, {"light", "Light", "Dark text on light", p.Theme == "light"}, {"dark", "Dark", "Light text on dark", p.Theme == "dark"},
		}},
		{"density", "Density", "", []settingsChoice{
			{"", "Comfortable", "Easy to read", p.Density == ""}, {"compact", "Compact", "More rows per screen", p.Density == "compact"},
		}},
		{"clock", "Times", "", []settingsChoice{
			{"", "Relative", "5 min ago", p.Clock == ""}, {"absolute", "Absolute", p.clock().exact(q.now), p.Clock == "absolute"},
		}},
	}
	return page{name: "settings", title: "Settings", data: shown}, nil
}

// settingsScopes says what each scope allows.
var settingsScopes = map[apikey.Scope]string{
	apikey.Viewer: "read everything", apikey.Operator: "read everything and intervene", apikey.Admin: "do everything",
}

// keepSettings saves the settings in a cookie.
func (c *Console) keepSettings(w http.ResponseWriter, r *http.Request) {
	q, err := c.authorize(w, r, apikey.Viewer)
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	chosen, err := settingsOf(r.PostForm)
	if err != nil {
		c.finishAction(w, q, actionResult{text: sentence(err), bad: true, to: "/settings"})
		return
	}
	chosen.keep(w, c.cfg.Prefix)
	c.finishAction(w, q, actionResult{text: "Settings saved in this browser.", to: "/settings"})
}

// settingsOf reads the form. If one value is invalid nothing is saved.
func settingsOf(form url.Values) (prefs, error) {
	for name, known := range map[string][]string{"theme": {"", "light", "dark"}, "density": {"", "compact"}, "clock": {"", "absolute"}} {
		if given := form.Get(name); given != "" && oneOf(given, known...) == "" {
			return prefs{}, invalid("%s %.20q: choose one of the options", name, given)
		}
	}
	if zone := form.Get("zone"); zone != "" {
		if _, err := zoneOf(zone); err != nil {
			return prefs{}, invalid("%.40q is not a time zone: use a name like Europe/Berlin, or UTC; nothing was saved", zone)
		}
	}
	return prefs{}.with(form), nil
}

// settingsZones are suggestions. Every other IANA zone is accepted, too.
var settingsZones = []string{
	"UTC", "Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi", "America/Anchorage", "America/Argentina/Buenos_Aires", "America/Bogota", "America/Chicago",
	"America/Denver", "America/Halifax", "America/Lima", "America/Los_Angeles", "America/Mexico_City", "America/New_York", "America/Phoenix", "America/Santiago", "America/Sao_Paulo",
	"America/St_Johns", "America/Toronto", "America/Vancouver", "Asia/Bangkok", "Asia/Dhaka", "Asia/Dubai", "Asia/Ho_Chi_Minh", "Asia/Hong_Kong", "Asia/Jakarta", "Asia/Jerusalem",
	"Asia/Karachi", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Manila", "Asia/Riyadh", "Asia/Seoul", "Asia/Shanghai", "Asia/Singapore", "Asia/Taipei", "Asia/Tashkent", "Asia/Tehran",
	"Asia/Tokyo", "Atlantic/Azores", "Atlantic/Reykjavik", "Australia/Adelaide", "Australia/Brisbane", "Australia/Perth", "Australia/Sydney", "Europe/Amsterdam", "Europe/Athens",
	"Europe/Berlin", "Europe/Brussels", "Europe/Bucharest", "Europe/Copenhagen", "Europe/Dublin", "Europe/Helsinki", "Europe/Istanbul", "Europe/Kyiv", "Europe/Lisbon", "Europe/London",
	"Europe/Madrid", "Europe/Oslo", "Europe/Paris", "Europe/Prague", "Europe/Rome", "Europe/Sofia", "Europe/Stockholm", "Europe/Vienna", "Europe/Warsaw", "Europe/Zurich",
	"Pacific/Auckland", "Pacific/Honolulu",
}
