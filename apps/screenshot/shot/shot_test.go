package shot_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

func TestABadOptionIsNamed(t *testing.T) {
	page := func(change func(*shot.Options)) shot.Options {
		o := shot.Options{URL: "https://example.org/"}
		change(&o)
		return o.WithDefaults()
	}
	for field, o := range map[string]shot.Options{
		"url":             page(func(o *shot.Options) { o.URL = "" }),
		"url ":            page(func(o *shot.Options) { o.URL = "file:///etc/passwd" }),
		"url  ":           page(func(o *shot.Options) { o.URL = "https://" }),
		"html":            page(func(o *shot.Options) { o.HTML = "<p>" }),
		"html ":           page(func(o *shot.Options) { o.URL, o.HTML = "", strings.Repeat("x", 6<<20) }),
		"format":          page(func(o *shot.Options) { o.Format = "gif" }),
		"format ":         page(func(o *shot.Options) { o.Format, o.FullPage = shot.PDF, true }),
		"format  ":        page(func(o *shot.Options) { o.Format, o.Height, o.Scale = shot.WebP, 9000, 2 }),
		"quality":         page(func(o *shot.Options) { o.Quality = 101 }),
		"width":           page(func(o *shot.Options) { o.Width = 10_001 }),
		"height":          page(func(o *shot.Options) { o.Height = -1 }),
		"scale":           page(func(o *shot.Options) { o.Scale = 5 }),
		"scale ":          page(func(o *shot.Options) { o.Width, o.Height, o.Scale = 9000, 9000, 2 }),
		"selector":        page(func(o *shot.Options) { o.Selector, o.FullPage = "p", true }),
		"waitFor":         page(func(o *shot.Options) { o.WaitFor = "forever" }),
		"waitForSelector": page(func(o *shot.Options) { o.WaitForSelector = " " }),
		"timeoutMs":       page(func(o *shot.Options) { o.TimeoutMS = 61_000 }),
		"delayMs":         page(func(o *shot.Options) { o.DelayMS, o.TimeoutMS = 6000, 5000 }),
		"locale":          page(func(o *shot.Options) { o.Locale = "--lang" }),
		"timeZone":        page(func(o *shot.Options) { o.TimeZone = "Mars/Olympus" }),
		"headers":         page(func(o *shot.Options) { o.Headers = map[string]string{"host": "x"} }),
		"headers ":        page(func(o *shot.Options) { o.Headers = map[string]string{"X-A": "a\r\nX-B: b"} }),
		"headers  ":       page(func(o *shot.Options) { o.Headers = map[string]string{"Proxy-Authorization": "x"} }),
		"cookies":         page(func(o *shot.Options) { o.Cookies = []shot.Cookie{{Name: "a b", Value: "x"}} }),
		"cookies ":        page(func(o *shot.Options) { o.Cookies = []shot.Cookie{{Name: "a", Value: "x; Domain=other"}} }),
		"click":           page(func(o *shot.Options) { o.Click = []string{""} }),
		"hide":            page(func(o *shot.Options) { o.Hide = make([]string, 51) }),
		"blockHosts":      page(func(o *shot.Options) { o.BlockHosts = []string{"http://ads"} }),
		"failOnText":      page(func(o *shot.Options) { o.FailOnText = []string{""} }),
		"paper":           page(func(o *shot.Options) { o.Paper = &shot.Paper{Width: 5000} }),
		"paper.margin":    page(func(o *shot.Options) { o.Paper = &shot.Paper{Margin: 150} }),
	} {
		var bad shot.FieldErrors
		field = strings.TrimSpace(field)
		if err := o.Check(shot.Limits{}); !errors.As(err, &bad) || bad[0].Field != field || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestGoodOptionsAreAccepted(t *testing.T) {
	for _, o := range []shot.Options{
		{URL: "https://example.org/path?q=1"}, {HTML: "<p>Hello"}, {URL: "http://example.org:8080", Format: shot.PDF},
		{
			URL: "https://example.org", Format: shot.JPEG, FullPage: true, Scale: 2, WaitFor: shot.Idle, WaitForSelector: "#ready", DelayMS: 100, DarkMode: true, Locale: "de-DE",
			TimeZone: "Europe/Berlin", Headers: map[string]string{"Authorization": "Bearer x"}, Cookies: []shot.Cookie{{Name: "a", Value: "b", Domain: ".example.org", Path: "/"}},
			Click: []string{"button"}, Hide: []string{".banner"}, BlockHosts: []string{"ads.example.org"}, FailOnText: []string{"Error"},
		},
	} {
		if err := o.WithDefaults().Check(shot.Limits{}); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if o := (shot.Options{}).WithDefaults(); o.Timeout() != 30*time.Second || o.Format.MediaType() != "image/png" || shot.PDF.MediaType() != "application/pdf" {
		t.Errorf("%+v", o)
	}
}

func TestAHostOnAListStandsForThoseBelowIt(t *testing.T) {
	list, err := shot.ReadHosts(strings.NewReader("# advertisements\n0.0.0.0 ads.example\n\ntracker.example # all of it\n"))
	if err != nil {
		t.Fatal(err)
	}
	for host, on := range map[string]bool{"ads.example": true, "a.b.ads.example": true, "tracker.example": true, "badtracker.example": false, "example": false, "": false} {
		if list.Has(host) != on {
			t.Errorf("%s", host)
		}
	}
	if _, err := shot.ReadHosts(strings.NewReader("good.example\n<html>\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
	if !shot.Ads().Has("stats.g.doubleclick.net") || shot.Ads().Has("example.org") {
		t.Error("the built-in list")
	}
}
