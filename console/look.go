package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/holdfastdev/holdfast/apikey"
)

//go:embed page/*.html
var pages embed.FS

//go:embed asset
var assets embed.FS

// looks are the templates, parsed once for all visitors: what differs between visitors is data.
type looks struct {
	prefix  string
	version string // of the assets: it is in their addresses, so that a new binary never meets old scripts
	style   []byte // the one style sheet: all of asset/style, in the order of their names
	pages   map[string]*template.Template
}

// load reads the assets and parses every page.
func (l *looks) load(prefix string) error {
	sum := sha256.New()
	err := fs.WalkDir(assets, "asset", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := assets.ReadFile(name)
		sum.Write(text)
		if strings.HasSuffix(name, ".css") {
			l.style = append(l.style, text...)
		}
		return err
	})
	if err != nil {
		return err
	}
	l.prefix, l.version, l.pages = prefix, hex.EncodeToString(sum.Sum(nil))[:10], map[string]*template.Template{}
	common, err := template.New("").Funcs(l.words()).ParseFS(pages, "page/layout.html", "page/part_*.html")
	if err != nil {
		return fmt.Errorf("the pages of the console: %w", err)
	}
	names, err := fs.Glob(pages, "page/*.html")
	if err != nil {
		return err
	}
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || strings.HasPrefix(name, "part_") {
			continue
		}
		one := template.Must(common.Clone())
		if l.pages[name], err = one.ParseFS(pages, file); err != nil {
			return fmt.Errorf("the page %s of the console: %w", name, err)
		}
	}
	return nil
}

// A view is what every template is given.
type view struct {
	Title   string
	Here    string
	Topics  string
	Base    string // the prefix
	Assets  string
	Address string // of this page, to come back to
	Menu    []section
	Visitor Visitor
	Known   bool // somebody was let in
	Leave   bool // there is a session to leave
	May     bool // intervene
	Admin   bool
	Fixed   bool // read-only
	Prefs   prefs
	Pulse   glance
	Said    *said // what the last deed did
	Version string
	Now     time.Time
	Clock   clock // how the visitor likes times, for when and exact
	Data    any
}

// show renders a page.
func (c *Console) show(w http.ResponseWriter, q *ask, p page) {
	look := c.looks.pages[p.name]
	if look == nil {
		c.cfg.Log.Error("a page cannot be rendered", "event", "page_failed", "page", p.name, "error", "there is no such template")
		http.Error(w, "The console has no such page: "+p.name, http.StatusInternalServerError)
		return
	}
	v := view{
		Title: p.title, Here: p.here, Topics: strings.Join(p.topics, " "), Base: c.cfg.Prefix, Assets: c.cfg.Prefix + "/asset/" + c.looks.version,
		Address: c.cfg.Prefix + q.URL.RequestURI(), Visitor: q.visitor, Known: q.visitor.Scope != "", Leave: q.visitor.signedIn,
		May: q.may(apikey.Operator), Admin: q.may(apikey.Admin), Fixed: c.cfg.ReadOnly, Prefs: q.prefs, Version: c.cfg.Version, Now: q.now, Clock: q.prefs.clock(), Data: p.data,
	}
	if v.Here == "" {
		v.Here = p.name
	}
	if v.Known {
		v.Pulse, _ = c.pulse.now(q.ctx) // a page without it says that the store does not answer
		v.Menu = menu(c.cfg.Prefix, v.Here, v.Pulse)
	}
	v.Said = c.heard(w, q.Request)
	var out bytes.Buffer
	if err := look.ExecuteTemplate(&out, "layout", v); err != nil {
		c.cfg.Log.Error("a page cannot be rendered", "event", "page_failed", "page", p.name, "error", err)
		http.Error(w, "The console had trouble with this page. Its log says more.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	_, _ = w.Write(visible(out.Bytes()))
}

// visible shows what would act on a page's text instead of being shown: each character that turns the order of letters round, in a text that a job or a person chose,
// is replaced by �. Pages have none of their own. In JSON such a character is shown as its escape instead.
func visible(page []byte) []byte {
	if !bytes.ContainsFunc(page, acts) {
		return page
	}
	return bytes.Map(func(r rune) rune {
		if acts(r) {
			return unicode.ReplacementChar
		}
		return r
	}, page)
}

// acts reports whether a character is a control character (but the ends of lines and tabs), or changes the direction of text.
func acts(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// A section is a part of the menu.
type section struct {
	Title string
	Items []item
}

// An item leads to a screen.
type item struct {
	Name, Title, Link, Icon string
	Key                     string // the keys that lead there
	Here                    bool
	Count                   int // what needs somebody there
	Bad                     bool
}

// menu is the list of screens, with what needs somebody.
func menu(prefix, here string, g glance) []section {
	sections := []section{
		{"", []item{
			{Name: "overview", Title: "Overview", Key: "o"}, {Name: "failures", Title: "Failures", Key: "f", Count: g.Troubles, Bad: true},
			{Name: "jobs", Title: "Jobs", Key: "j"}, {Name: "dead-letters", Title: "Dead letters", Key: "d", Count: g.Dead}, {Name: "redrives", Title: "Redrives", Key: "r", Count: g.Redrives},
			{Name: "breakers", Title: "Breakers", Key: "b", Count: g.Open, Bad: true},
		}},
		{"Work", []item{
			{Name: "queues", Title: "Queues", Key: "q", Count: g.Paused}, {Name: "groups", Title: "Groups", Key: "m"}, {Name: "workers", Title: "Workers", Key: "w"},
			{Name: "schedules", Title: "Schedules", Key: "c"}, {Name: "deliveries", Title: "Deliveries", Key: "l"},
		}},
		{"Understand", []item{
			{Name: "analytics", Title: "Analytics", Key: "n"}, {Name: "policies", Title: "Policies", Key: "p"}, {Name: "audit", Title: "Audit", Key: "a"},
			{Name: "health", Title: "Health", Key: "h"}, {Name: "settings", Title: "Settings", Key: "s"},
		}},
	}
	for s := range sections {
		for i := range sections[s].Items {
			it := &sections[s].Items[i]
			it.Link, it.Icon, it.Here = prefix+"/"+it.Name, "icon-"+it.Name, it.Name == here
		}
	}
	return sections
}

// mountAssets serves style sheet, scripts and pictures. They may be kept for ever: another version has another address.
func (c *Console) mountAssets() {
	c.mux.HandleFunc("GET /asset/{version}/{file}", func(w http.ResponseWriter, r *http.Request) {
		text, err := assets.ReadFile("asset/" + r.PathValue("file"))
		if r.PathValue("file") == "style.css" {
			text, err = c.looks.style, nil
		}
		kind := kinds[path.Ext(r.PathValue("file"))]
		if err != nil || kind == "" || r.PathValue("version") != c.looks.version {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		_, _ = w.Write(text)
	})
}

var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// topics that pages may name. The stream of changes speaks of nothing else.
var topics = []string{"jobs", "failures", "breakers", "redrives", "holds", "groups", "workers", "feed"}
