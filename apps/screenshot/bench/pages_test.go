//go:build unix

package bench

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
)

const words = "Each shot is a job of its own that is stored before it is taken, retried by its class and paid for once it exists. "

// style gives all pages the same fonts, so that their pictures do not depend on those of the system.
const style = `<style>
	@font-face { font-family: Go; src: url(/go.ttf) } @font-face { font-family: Go; font-weight: bold; src: url(/bold.ttf) } @font-face { font-family: Mono; src: url(/mono.ttf) }
	body { font: 16px/1.5 Go; margin: 24px; color: #222; background: #fff } pre { font: 14px Mono } td, th { border: 1px solid #999; padding: 3px 8px }
</style>`

// pages are the pages of the benchmark, by path: texts, tables, pictures, vector graphics, styles, scripts, frames and a long one.
func pages() map[string]string {
	list := map[string]string{}
	add := func(name, body string) {
		list[fmt.Sprintf("/%02d-%s", len(list)+1, name)] = `<!doctype html><meta charset=utf-8><title>` + name + `</title>` + style + `<h1>` + name + `</h1>` + body
	}
	paragraphs := func(n int) string { return strings.Repeat("<p>"+strings.Repeat(words, 4), n) }
	rows := func(n, columns int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("<tr>")
			for j := range columns {
				fmt.Fprintf(&b, "<td>%d", i*j)
			}
		}
		return "<table>" + b.String() + "</table>"
	}
	add("text", paragraphs(8))
	add("long text", paragraphs(300))
	add("columns", `<div style="columns: 3">`+paragraphs(20)+`</div>`)
	add("table", rows(40, 12))
	add("large table", rows(1000, 20))
	add("pictures", strings.Repeat(`<img src=/picture.png width=200> `, 20))
	add("photographs", strings.Repeat(`<img src=/photo.jpg width=400> `, 6))
	add("many pictures", many(60, `<img src="/picture.png?%d" width=60> `))
	add("vectors", many(40, `<svg width=100 height=100><circle cx=50 cy=50 r=%d fill="#38a" stroke="#026"/></svg>`))
	add("large vector", `<svg width=1200 height=600>`+many(1500, `<line x1=0 y1=0 x2=1200 y2=%d stroke="#49c" />`)+`</svg>`)
	add("gradients", many(30, `<div style="height: 20px; background: linear-gradient(%ddeg, #f80, #08f)"></div>`))
	add("shadows", many(60, `<div style="display: inline-block; width: 100px; height: 60px; margin: 10px; border-radius: %dpx; box-shadow: 0 4px 16px #0006"></div>`))
	add("grid", `<div style="display: grid; grid-template-columns: repeat(6, 1fr); gap: 8px">`+many(60, `<div style="background: #def; padding: 12px">Cell %d</div>`)+`</div>`)
	add("code", `<pre>`+many(60, "func f%d(ctx context.Context) error { return nil }\n")+`</pre>`)
	add("script", `<div id=out></div><script>for (let n = 0; n < 2000; n++) { const e = document.createElement("span"); e.textContent = n + " "; out.append(e) }</script>`)
	add("canvas", `<canvas width=1100 height=600></canvas><script>const d = document.querySelector("canvas").getContext("2d"); for (let n = 0; n < 3000; n++) { d.fillStyle = "hsl(" + n % 360 + " 60% 60%)"; d.fillRect(n * 37 % 1100, n * 91 % 600, 20, 20) }</script>`)
	add("requests", `<ol id=out></ol>`+many(10, `<script src="/data.js?%d"></script>`))
	add("frames", strings.Repeat(`<iframe src="/01-text" width=500 height=200></iframe> `, 4))
	add("styles", many(10, `<link rel=stylesheet href="/style.css?%d">`)+paragraphs(6))
	add("languages", strings.Repeat(`<p><b>Größe</b> · façade · naïve · Ελληνικά · Кириллица · 100 €`, 20))
	return list
}

func many(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// servePages serves the pages until the test ends, and returns their addresses.
func servePages(t *testing.T) (addresses []string) {
	t.Helper()
	all := pages()
	files := map[string][]byte{"/go.ttf": goregular.TTF, "/bold.ttf": gobold.TTF, "/mono.ttf": gomono.TTF, "/picture.png": picture(), "/photo.jpg": photo(t)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch file, page := files[r.URL.Path], all[r.URL.Path]; {
		case file != nil:
			_, _ = w.Write(file)
		case page != "":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(page))
		case r.URL.Path == "/data.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprintf(w, `{ const e = document.createElement("li"); e.textContent = "Answer %s"; document.querySelector("#out").append(e) }`, r.URL.RawQuery)
		case r.URL.Path == "/style.css":
			w.Header().Set("Content-Type", "text/css")
			fmt.Fprintf(w, "p:nth-child(%s) { color: #a40 }", r.URL.RawQuery)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for path := range all {
		addresses = append(addresses, "http://127.0.0.1:"+port+path)
	}
	slices.Sort(addresses)
	return addresses
}

func pattern(side int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			m.SetRGBA(x, y, color.RGBA{byte(x * y / 64), byte(x ^ y), byte(x + y), 255})
		}
	}
	return m
}

func picture() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, pattern(256))
	return b.Bytes()
}

func photo(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, pattern(1024), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
