package console

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// mountSettings mounts how a visitor likes pages. Keeping it changes a cookie and nothing else, so everybody may who may look.
func (c *Console) mountSettings() {
	c.see("/settings", settingsScreen)
	c.mux.HandleFunc("POST /settings", c.keepSettings)
}

// A settingsPage is how a visitor likes pages, and what there is to choose from.
type settingsPage struct {
	Groups []settingsGroup
	Zone   string
	Zones  []string
	May    string // what the visitor's scope lets them do
}

// A settingsGroup is one thing to choose.
type settingsGroup struct {
	Name, Title, Text string
	Choices           []settingsChoice
}

// A settingsChoice is one way to have it.
type settingsChoice struct {
	Value, Title, Text string
	Here               bool
}

func settingsScreen(q *ask) (page, error) {
	p := q.prefs
	shown := settingsPage{Zone: p.Zone, Zones: settingsZones, May: settingsScopes[q.visitor.Scope]}
	shown.Groups = []settingsGroup{
		{"theme", "Theme", "", []settingsChoice{
			{"", "System", "As the device does", p.Theme == ""}, {"light", "Light", "Dark on paper", p.Theme == "light"}, {"dark", "Dark", "Light on slate", p.Theme == "dark"},
		}},
		{"density", "Density", "", []settingsChoice{
			{"", "Roomy", "Easy to read", p.Density == ""}, {"compact", "Compact", "More rows on a screen", p.Density == "compact"},
		}},
		{"clock", "Times", "", []settingsChoice{
			{"", "Relative", "5 min ago", p.Clock == ""}, {"absolute", "Absolute", p.clock().exact(q.now), p.Clock == "absolute"},
		}},
	}
	return page{name: "settings", title: "Settings", data: shown}, nil
}

// settingsScopes say what each scope may do.
var settingsScopes = map[apikey.Scope]string{
	apikey.Viewer: "look at everything", apikey.Operator: "look at everything and intervene", apikey.Admin: "do everything",
}

// keepSettings has the browser remember what was chosen.
func (c *Console) keepSettings(w http.ResponseWriter, r *http.Request) {
	q, err := c.enter(w, r, apikey.Viewer)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	chosen, err := settingsOf(r.PostForm)
	if err != nil {
		c.goOn(w, q, done{text: sentence(err), bad: true, to: "/settings"})
		return
	}
	chosen.keep(w, c.cfg.Prefix)
	c.goOn(w, q, done{text: "Kept in this browser.", to: "/settings"})
}

// settingsOf reads the form. One thing that makes no sense has nothing kept, so that nobody wonders which.
func settingsOf(form url.Values) (prefs, error) {
	for name, known := range map[string][]string{"theme": {"", "light", "dark"}, "density": {"", "compact"}, "clock": {"", "absolute"}} {
		if given := form.Get(name); given != "" && oneOf(given, known...) == "" {
			return prefs{}, settingsRefused("%s %.20q: use one of those that are offered", name, given)
		}
	}
	if zone := form.Get("zone"); zone != "" {
		if _, err := zoneOf(zone); err != nil {
			return prefs{}, settingsRefused("%.40q is no time zone: use a name like Europe/Berlin, or UTC; nothing was kept", zone)
		}
	}
	return prefs{}.with(form), nil
}

func settingsRefused(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

// settingsZones are offered while somebody types. Every other zone of the world is taken too.
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
