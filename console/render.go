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

// templates holds the parsed page templates and the style sheet. They are the same for all visitors.
type templates struct {
	prefix  string
	version string // hash of the assets. It is part of their URLs, so that the pages of a new binary never load old scripts
	style   []byte // the style sheet: all files of asset/style, in the order of their names
	pages   map[string]*template.Template
}

// load reads the assets and parses every page.
func (l *templates) load(prefix string) error {
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
	common, err := template.New("").Funcs(l.funcs()).ParseFS(pages, "page/layout.html", "page/part_*.html")
	if err != nil {
		return fmt.Errorf("console: parse the templates: %w", err)
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
			return fmt.Errorf("console: parse the template of page %s: %w", name, err)
		}
	}
	return nil
}

// A view is the data of every template.
type view struct {
	Title    string
	Here     string
	Topics   string
	Base     string // the prefix
	Assets   string
	Address  string // of this page, for forms that lead back to it
	Menu     []section
	Visitor  Visitor
	Known    bool // the visitor is signed in, or needs no key
	Leave    bool // there is a session to sign out of
	May      bool // may intervene: scope operator
	Admin    bool
	Fixed    bool // read-only
	Prefs    prefs
	Snapshot snapshot
	Flash    *flash // the result of the last action
	Version  string
	Now      time.Time
	Clock    clock // time zone and format of the visitor, for the functions when and exact
	Data     any
}

// render renders a page. A template error is logged and answered with status 500.
func (c *Console) render(w http.ResponseWriter, q *request, p page) {
	tmpl := c.templates.pages[p.name]
	if tmpl == nil {
		c.cfg.Log.Error("page not rendered", "event", "page_failed", "page", p.name, "error", "there is no such template")
		http.Error(w, "The console has no such page: "+p.name, http.StatusInternalServerError)
		return
	}
	v := view{
		Title: p.title, Here: p.here, Topics: strings.Join(p.topics, " "), Base: c.cfg.Prefix, Assets: c.cfg.Prefix + "/asset/" + c.templates.version,
		Address: c.cfg.Prefix + q.URL.RequestURI(), Visitor: q.visitor, Known: q.visitor.Scope != "", Leave: q.visitor.signedIn,
		May: q.may(apikey.Operator), Admin: q.may(apikey.Admin), Fixed: c.cfg.ReadOnly, Prefs: q.prefs, Version: c.cfg.Version, Now: q.now, Clock: q.prefs.clock(), Data: p.data,
	}
	if v.Here == "" {
		v.Here = p.name
	}
	if v.Known {
		v.Snapshot, _ = c.snapshots.now(q.ctx) // on an error the page says that the store is unavailable
		v.Menu = menu(c.cfg.Prefix, v.Here, v.Snapshot)
	}
	v.Flash = c.takeFlash(w, q.Request)
	var out bytes.Buffer
	if err := tmpl.ExecuteTemplate(&out, "layout", v); err != nil {
		c.cfg.Log.Error("page not rendered", "event", "page_failed", "page", p.name, "error", err)
		http.Error(w, "This page could not be rendered. The server log has the error.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	_, _ = w.Write(replaceUnsafeRunes(out.Bytes()))
}

// replaceUnsafeRunes replaces each control character and each character that changes the direction of text by �. Such characters come from texts of jobs and of
// people; templates have none of their own. In JSON they are shown as escapes instead (see pretty).
func replaceUnsafeRunes(page []byte) []byte {
	if !bytes.ContainsFunc(page, isUnsafeRune) {
		return page
	}
	return bytes.Map(func(r rune) rune {
		if isUnsafeRune(r) {
			return unicode.ReplacementChar
		}
		return r
	}, page)
}

// isUnsafeRune reports whether a character is a control character other than a line end or a tab, or changes the direction of text.
func isUnsafeRune(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// A section is a group of menu items.
type section struct {
	Title string
	Items []item
}

// An item is a link of the menu.
type item struct {
	Name, Title, Link, Icon string
	Key                     string // the second key of its shortcut, after g
	Here                    bool
	Count                   int // things on that page that need attention
	Bad                     bool
}

// menu returns the menu, with the number of things that need attention on each page.
func menu(prefix, here string, g snapshot) []section {
	sections := []section{
		{"", []item{
			{Name: "overview", Title: "Overview", Key: "o"}, {Name: "failures", Title: "Errors", Key: "f", Count: g.NewErrors, Bad: true},
			{Name: "jobs", Title: "Jobs", Key: "j"}, {Name: "dead-letters", Title: "Dead letters", Key: "d", Count: g.Dead}, {Name: "redrives", Title: "Redrives", Key: "r", Count: g.Redrives},
			{Name: "breakers", Title: "Breakers", Key: "b", Count: g.Open, Bad: true},
		}},
		{"Work", []item{
			{Name: "queues", Title: "Queues", Key: "q", Count: g.Paused}, {Name: "groups", Title: "Groups", Key: "m"}, {Name: "workers", Title: "Workers", Key: "w"},
			{Name: "schedules", Title: "Schedules", Key: "c"}, {Name: "deliveries", Title: "Deliveries", Key: "l"},
		}},
		{"System", []item{
			{Name: "analytics", Title: "Analytics", Key: "n"}, {Name: "policies", Title: "Policies", Key: "p"}, {Name: "audit", Title: "Audit log", Key: "a"},
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

// mountAssets serves the style sheet, the scripts and the icon. Browsers may cache them for ever, because another version has another URL.
func (c *Console) mountAssets() {
	c.mux.HandleFunc("GET /asset/{version}/{file}", func(w http.ResponseWriter, r *http.Request) {
		text, err := assets.ReadFile("asset/" + r.PathValue("file"))
		if r.PathValue("file") == "style.css" {
			text, err = c.templates.style, nil
		}
		contentType := contentTypes[path.Ext(r.PathValue("file"))]
		if err != nil || contentType == "" || r.PathValue("version") != c.templates.version {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		_, _ = w.Write(text)
	})
}

// contentTypes by file extension. Other files are not served.
var contentTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// topics that a page can depend on. The live stream sends topic names and nothing else.
var topics = []string{"jobs", "failures", "breakers", "redrives", "holds", "groups", "workers", "feed"}
