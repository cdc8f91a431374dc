package browser_test

import (
	"bytes"
	"fmt"
	"image/color"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/egress"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// squares is a page with a red box at the top left, and a green one 3,000 pixels further down.
const squares = `<!doctype html><title>Squares</title><style>body{margin:0;height:4000px;position:relative}div{position:absolute;width:100px;height:100px}</style>
	<div id=red style="background:red;left:0;top:0"></div><div id=green style="background:green;left:50px;top:3000px"></div>`

func TestPicturesShowWhatWasAsked(t *testing.T) {
	s := open(t, nil)
	at := serve(t, map[string]http.HandlerFunc{"/": text(squares)})
	for _, format := range []shot.Format{shot.PNG, shot.JPEG, shot.WebP} {
		p := s.take(shot.Options{URL: at, Format: format, Width: 400, Height: 300})
		if p.Facts.Width != 400 || p.Facts.Height != 300 || p.Facts.Status != 200 || p.Facts.FinalURL != at+"/" || p.Facts.Title != "Squares" || p.Facts.Requests == 0 || p.Facts.Received == 0 {
			t.Errorf("%+v", p.Facts)
		}
		s.shows(p, 50, 50, red)
		s.shows(p, 200, 50, white)
	}
	whole := s.take(shot.Options{URL: at, FullPage: true, Width: 400, Height: 300, Scale: 2})
	if whole.Facts.Width != 800 || whole.Facts.Height != 8000 || whole.Facts.Strips != 1 {
		t.Errorf("%+v", whole.Facts)
	}
	s.shows(whole, 100, 100, red)
	s.shows(whole, 150, 6100, green)
	element := s.take(shot.Options{URL: at, Selector: "#green"})
	if element.Facts.Width != 100 || element.Facts.Height != 100 {
		t.Errorf("%+v", element.Facts)
	}
	s.shows(element, 50, 50, green)
	s.fails(code.PageSelectorMissing, shot.Options{URL: at, Selector: "#none"})
	document := s.take(shot.Options{HTML: `<!doctype html><body style="background:blue">`, Width: 100, Height: 100})
	s.shows(document, 5, 5, blue)
	pdf := s.take(shot.Options{URL: at, Format: shot.PDF})
	if !bytes.HasPrefix(pdf.Data, []byte("%PDF-")) || !bytes.Contains(pdf.Data[max(0, len(pdf.Data)-1024):], []byte("%%EOF")) {
		t.Errorf("%d bytes", len(pdf.Data))
	}
	if st := s.pool.Status(); st.Started != 1 || st.Sick != 0 || st.Failed != 1 {
		t.Errorf("%+v", st)
	}
}

func TestTallPagesAreMadeOfStripsWithoutGapsOrRepeats(t *testing.T) {
	// Every 100 rows have a colour of their own, so that a part at the wrong place is seen.
	const rows, height = 200, 100
	colour := func(n int) color.RGBA { return color.RGBA{byte(n), byte(255 - n), byte(n * 37), 255} }
	var page strings.Builder
	page.WriteString(`<!doctype html><title>Tall</title><style>body{margin:0}div{height:100px}header{position:fixed;top:0;right:0;width:20px;height:20px;background:black}</style><header></header>`)
	for n := range rows {
		c := colour(n)
		fmt.Fprintf(&page, `<div style="background:rgb(%d,%d,%d)"></div>`, c.R, c.G, c.B)
	}
	s := open(t, nil)
	at := serve(t, map[string]http.HandlerFunc{"/": text(page.String())})
	for _, o := range []shot.Options{{Format: shot.PNG}, {Format: shot.JPEG, Quality: 95}, {Format: shot.PNG, Scale: 1.5}} {
		o.URL, o.FullPage, o.Width, o.Height = at, true, 200, 150
		p := s.take(o)
		scale := max(1, o.Scale)
		if p.Facts.Height != int(rows*height*scale) || p.Facts.Strips < 5 {
			t.Fatalf("%+v", p.Facts)
		}
		m := s.decode(p)
		for n := range rows {
			for _, y := range []int{4, 50, 95} {
				if err := is(m, 20, int(float64(n*height+y)*scale), colour(n)); err != nil {
					t.Fatalf("%s at scale %v, row %d: %v", o.Format, scale, n, err)
				}
			}
		}
		if err := is(m, int(195*scale), int(4500*scale), colour(45)); err != nil {
			t.Errorf("a fixed element is repeated: %v", err)
		}
	}
	s.fails(code.PictureTooLarge, shot.Options{URL: at, FullPage: true, Format: shot.WebP})
}

func TestThePageSeesWhatTheOptionsSay(t *testing.T) {
	s := open(t, nil)
	at := serve(t, map[string]http.HandlerFunc{"/": text(`<!doctype html><title>-</title><p>Hello<script>
		document.title = [matchMedia("(prefers-color-scheme: dark)").matches, navigator.language, new Intl.NumberFormat().format(1.5),
			new Date(2026, 0, 1).getTimezoneOffset(), document.cookie || null, innerWidth, innerHeight, devicePixelRatio].join(" ");
	</script>`)})
	plain := s.take(shot.Options{URL: at})
	if want := "false en-US 1.5 0 1280 800 1"; plain.Facts.Title != want {
		t.Errorf("%q instead of %q", plain.Facts.Title, want)
	}
	other := s.take(shot.Options{
		URL: at, DarkMode: true, Locale: "de-DE", TimeZone: "Asia/Tokyo", Width: 500, Height: 400, Scale: 2, Cookies: []shot.Cookie{{Name: "visitor", Value: "known"}},
	})
	if want := "true de-DE 1,5 -540 visitor=known 500 400 2"; other.Facts.Title != want {
		t.Errorf("%q instead of %q", other.Facts.Title, want)
	}
	if again := s.take(shot.Options{URL: at}); again.Facts.Title != plain.Facts.Title {
		t.Errorf("the previous shot left something behind: %q", again.Facts.Title)
	}
}

func TestHeadersGoToTheOriginOfThePageOnly(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	note := func(content string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			name, _, _ := strings.Cut(r.Host, ":")
			got[name+r.URL.Path] = r.Header.Get("X-Key") + r.Header.Get("Proxy-Authorization")
			fmt.Fprint(w, content)
		}
	}
	s := open(t, nil)
	other := strings.Replace(serve(t, map[string]http.HandlerFunc{"/away": note("<p>Hello"), "/script": note("")}), "page.", "other.", 1)
	at := serve(t, map[string]http.HandlerFunc{
		"/": note(`<p>Hello<script src=/script></script><script src="` + other + `/script"></script>`), "/script": note(""),
		"/redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other+"/away", http.StatusFound) },
	})
	s.take(shot.Options{URL: at, Headers: map[string]string{"X-Key": "secret"}})
	s.take(shot.Options{URL: at + "/redirect", Headers: map[string]string{"X-Key": "secret"}})
	for path, want := range map[string]string{"page.example/": "secret", "page.example/script": "secret", "other.example/script": "", "other.example/away": ""} {
		if value, asked := got[path]; !asked || value != want {
			t.Errorf("%s got %q, %v", path, value, asked)
		}
	}
}

func TestThePageIsPreparedAsAsked(t *testing.T) {
	s := open(t, nil)
	at := serve(t, map[string]http.HandlerFunc{"/": text(`<!doctype html><meta http-equiv=Content-Security-Policy content="default-src 'none'; script-src 'unsafe-inline'; style-src 'none'">
		<title>Page</title><body bgcolor=white><button>Show</button><p class=banner>Cookies</p><p id=late hidden>Late</p><script>
		document.querySelector("button").onclick = () => { document.body.bgColor = "green"; };
		setTimeout(() => { document.querySelector("#late").hidden = false; document.title = "Late" }, 700);
	</script>`)})
	clicked := s.take(shot.Options{URL: at, Click: []string{"button"}, Width: 300, Height: 300})
	s.shows(clicked, 250, 250, green)
	if late := s.take(shot.Options{URL: at, WaitForSelector: "#late"}); late.Facts.Title != "Late" {
		t.Errorf("%+v", late.Facts)
	}
	if late := s.take(shot.Options{URL: at, DelayMS: 1500}); late.Facts.Title != "Late" || late.Facts.DurationMS < 1500 {
		t.Errorf("%+v", late.Facts)
	}
	s.fails(code.PageSelectorMissing, shot.Options{URL: at, Hide: []string{".banner"}, Selector: ".banner"})
	s.fails(code.PageSelectorMissing, shot.Options{URL: at, Click: []string{"#none"}})
	s.fails(code.PageTextFound, shot.Options{URL: at, FailOnText: []string{"no such text", "Cookies"}})
	if err := s.fails(code.Validation, shot.Options{URL: at, WaitForSelector: "p["}); !hasField(err, "waitForSelector") {
		t.Error(err)
	}
	if err := s.fails(code.Validation, shot.Options{URL: "ftp://page.example/"}); !hasField(err, "url") {
		t.Error(err)
	}
}

func TestHostsOnTheListAreNotCalled(t *testing.T) {
	called := make(chan string, 100)
	note := func(w http.ResponseWriter, r *http.Request) {
		called <- r.Host
		w.Header().Set("Content-Type", "text/javascript")
	}
	s := open(t, nil)
	ads := serve(t, map[string]http.HandlerFunc{"/ad.js": note})
	of := func(host string) string { return strings.Replace(ads, "page.example", host, 1) + "/ad.js" }
	at := serve(t, map[string]http.HandlerFunc{"/": text(`<title>Page</title><p>Hello<script src="` + of("cdn.ads.example") + `"></script><script src="` + of("good.example") + `"></script>`)})
	p := s.take(shot.Options{URL: at, BlockHosts: []string{"ads.example"}, FailOnRequestErrors: false})
	denied := 0
	for _, one := range p.Facts.Blocked { // a request of the browser itself may be among them
		if one.Reason == egress.Denied {
			denied++
		}
		if strings.HasPrefix(one.Host, "cdn.ads.example:") != (one.Reason == egress.Denied) {
			t.Errorf("%+v", p.Facts)
		}
	}
	if denied != 1 {
		t.Errorf("%+v", p.Facts)
	}
	close(called)
	for host := range called {
		if !strings.HasPrefix(host, "good.example") {
			t.Errorf("%s was called", host)
		}
	}
}

func TestBlankPicturesAreFailures(t *testing.T) {
	s := open(t, nil)
	for _, page := range []string{`<!doctype html><title>Nothing</title>`, `<body style="background:#000">`, `<body style="background:red;color:red"><p>Hidden`} {
		for _, format := range []shot.Format{shot.PNG, shot.JPEG, shot.WebP} {
			s.fails(code.PictureBlank, shot.Options{HTML: page, Format: format})
		}
		s.take(shot.Options{HTML: page, AllowBlank: true})
	}
	s.take(shot.Options{HTML: `<body style="background:red">`})
}
