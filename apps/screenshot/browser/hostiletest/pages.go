package hostiletest

import (
	"strings"

	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// A Page is a page that harms the browser which shows it, or keeps it from taking a picture.
type Page struct {
	Name    string
	Stands  bool         // for its class: `make test` takes a picture of it, and `make soak` of all pages
	Options shot.Options // of the shot, without its URL
	Host    string       // instead of that of the server
	Codes   []string     // of the shot's failure, any of them; a picture is right if there are none
	Or      bool         // a picture is right as well: it depends on the speed of the machine
	Shows   bool         // the top left corner of the picture is green
	Dialogs int          // that the page opens before the picture is taken

	html    string // the document. OTHER is another host of the same server
	handler answer // instead of html
}

// Pages returns all pages.
func Pages() (list []Page) {
	for _, class := range [][]Page{dialogs(), scripts(), memory(), loops(), network(), windows(), drawing()} {
		list = append(list, class...)
	}
	return list
}

// Path returns the path of the page on its server.
func (p Page) Path() string { return "/" + strings.ReplaceAll(p.Name, " ", "-") + "/" }

// green is the beginning of a document that shows something.
const green = `<!doctype html><title>Page</title><style>body { margin: 0; background: green }</style><p>Page</p>`

var (
	busy   = []string{code.PageUnresponsive}
	full   = []string{code.PageOutOfMemory}
	loop   = []string{code.PageRedirectLoop}
	late   = []string{code.PageTimeout}
	lost   = []string{code.PageConnectionLost}
	large  = []string{code.PageTooLarge}
	anyEnd = []string{code.PageOutOfMemory, code.PageUnresponsive, code.PageTimeout, code.PageCrashed, code.PageTooLarge}
)

func dialogs() []Page {
	return []Page{
		{Name: "dialogs", Stands: true, Shows: true, Dialogs: 3, html: green + `<script>alert(1); confirm(2); prompt(3)</script>`},
		{Name: "dialogs without end", Codes: busy, html: green + `<script>for (;;) alert(1)</script>`},
		{Name: "dialogs in a frame of another site", Shows: true, Dialogs: 2, html: green + `<iframe src="OTHER/part/dialogs"></iframe>`},
		{Name: "a dialog on leaving", Shows: true, html: green + `<script>
			for (const event of ["beforeunload", "unload", "pagehide", "visibilitychange"]) addEventListener(event, (e) => { e.preventDefault(); e.returnValue = "stay"; alert(event); for (;;); });
		</script>`},
		{Name: "print and find", Shows: true, html: green + `<script>for (let n = 0; n < 50; n++) { print(); find("Page") }</script>`},
	}
}

func scripts() []Page {
	return []Page{
		{Name: "an endless script", Stands: true, Codes: busy, html: green + `<script>for (;;);</script>`},
		{Name: "an endless script after the page was loaded", Codes: busy, html: green + `<script>addEventListener("load", () => { for (;;); })</script>`},
		{Name: "an endless script when it is drawn", Codes: busy, html: green + `<script>requestAnimationFrame(function f() { requestAnimationFrame(f); const until = Date.now() + 60000; while (Date.now() < until); })</script>`},
		{Name: "endless promises", Codes: busy, html: green + `<script>(function next() { Promise.resolve().then(next) })()</script>`},
		{Name: "a script that searches without end", Codes: busy, html: green + `<script>/^(a+)+$/.test("a".repeat(64) + "b")</script>`},
		{Name: "an endless script in a frame of another site", Codes: append(busy, late...), html: green + `<iframe src="OTHER/part/endless"></iframe>`},
		{Name: "endless workers", Shows: true, html: green + `<script>
			const source = URL.createObjectURL(new Blob(["for (;;);"]));
			for (let n = 0; n < 16; n++) new Worker(source);
		</script>`},
		{Name: "a document that is written without end", Codes: anyEnd, html: green + `<script>for (;;) document.write("<p>more")</script>`},
		{Name: "a synchronous request without an answer", Codes: busy, html: green + `<script>const r = new XMLHttpRequest(); r.open("GET", "/part/silent", false); r.send()</script>`},
		{Name: "timers without end", Shows: true, html: green + `<script>for (let n = 0; n < 1000; n++) setInterval(() => document.body.append(""), 0)</script>`},
		{Name: "changed built-in functions", Shows: true, html: green + `<script>
			for (const name of ["Promise", "requestAnimationFrame", "setTimeout", "JSON", "CSSStyleSheet"]) window[name] = undefined;
			Object.defineProperty(document, "fonts", { get() { for (;;); } });
			Object.defineProperty(Document.prototype, "title", { get() { for (;;); } });
			Array.prototype.find = String.prototype.slice = Element.prototype.getBoundingClientRect = () => { for (;;); };
		</script>`},
	}
}

func memory() []Page {
	return []Page{
		{Name: "a full heap", Stands: true, Codes: full, html: green + `<script>const all = []; for (;;) all.push(new Array(100000).fill(Math.random()))</script>`},
		{Name: "a full memory", Stands: true, Codes: full, html: green + `<script>const all = []; setInterval(() => all.push(new Uint8Array(32 << 20).fill(7)), 1)</script>`, Options: shot.Options{DelayMS: 25_000, TimeoutMS: 30_000}},
		{Name: "memory full of texts", Codes: anyEnd, html: green + `<script>let text = "x"; const all = []; for (;;) { text += text.slice(0, 1 << 20); all.push(text.split("").join("-")) }</script>`},
		{Name: "memory full of workers", Codes: anyEnd, Or: true, html: green + `<script>
			const source = URL.createObjectURL(new Blob(["const all = []; for (;;) all.push(new Array(100000).fill(Math.random()))"]));
			for (let n = 0; n < 8; n++) new Worker(source);
		</script>`, Options: shot.Options{DelayMS: 3000}},
		{Name: "a huge document", Codes: anyEnd, Or: true, html: green + `<script>
			document.body.innerHTML = ("<div>".repeat(100) + "x" + "</div>".repeat(100)).repeat(10000);
		</script>`},
		{Name: "a deep document", Codes: anyEnd, Or: true, html: green + `<script>
			let inner = document.body;
			for (let n = 0; n < 100000; n++) { const e = document.createElement("span"); inner.append(e); inner = e }
			inner.append("x");
		</script>`},
		{Name: "a compressed bomb", Codes: anyEnd, handler: compressedBomb},
		{Name: "storage without end", Codes: anyEnd, Or: true, Shows: true, html: green + `<script>
			const open = indexedDB.open("bomb");
			open.onupgradeneeded = () => open.result.createObjectStore("s");
			open.onsuccess = () => { let n = 0; (function next() {
				const t = open.result.transaction("s", "readwrite"); t.objectStore("s").put(new Uint8Array(16 << 20).fill(n), n++); t.oncomplete = next;
			})() };
		</script>`, Options: shot.Options{DelayMS: 2000}},
		{Name: "a renderer that is killed", Stands: true, Codes: []string{code.PageCrashed}, html: green + `<script>fetch("/part/kill")</script>`, Options: shot.Options{WaitForSelector: "#never"}},
	}
}

func loops() []Page {
	return []Page{
		{Name: "redirects in a circle", Stands: true, Codes: loop, handler: redirect},
		{Name: "redirects that never end", Codes: loop, handler: redirectOn},
		{Name: "refreshes in a circle", Codes: loop, html: green + `<meta http-equiv=refresh content=0>`},
		{Name: "a script that continues", Stands: true, Codes: loop, html: green + `<script>location = "?" + Math.random()</script>`},
		{Name: "a script that reloads when loaded", Codes: loop, html: green + `<script>addEventListener("load", () => location.reload())</script>`},
		{Name: "a form that sends itself", Codes: loop, html: green + `<form method=post></form><script>document.forms[0].submit()</script>`},
		{Name: "a page that continues without end, and never arrives", Codes: append(busy, late...), Or: true, Shows: true, html: green + `<script>setInterval(() => { location = "/part/silent?" + Math.random() }, 1)</script>`},
		{Name: "states without end", Stands: true, Codes: busy, html: green + `<script>for (let n = 0; ; n++) history.pushState(n, "", "?" + n + "x".repeat(1000))</script>`},
		{Name: "marks without end", Codes: append(busy, late...), Or: true, html: green + `<script>let n = 0; const next = () => { for (let i = 0; i < 100; i++) location.hash = n++; setTimeout(next) }; next()</script>`},
		{Name: "frames in frames", Codes: anyEnd, Or: true, handler: frames},
		{Name: "frames of other sites in frames", Codes: anyEnd, Or: true, html: green + `<iframe src="OTHER/part/frames/12"></iframe>`},
		{Name: "a frame that continues", Codes: append(late, busy...), Or: true, html: green + `<iframe src="/part/goes-on"></iframe>`},
	}
}

func network() []Page {
	return []Page{
		{Name: "never idle", Stands: true, Codes: []string{code.PageNeverIdle}, Options: shot.Options{WaitFor: shot.Idle}, html: green + `<script>setInterval(() => fetch("/part/silent?" + Math.random()).catch(() => {}), 100)</script>`},
		{Name: "no answer", Codes: late, handler: silent},
		{Name: "a slow answer", Stands: true, Codes: late, handler: slow},
		{Name: "an answer without end", Codes: append(large, late...), handler: endless},
		{Name: "a picture without end", Codes: append(full, append(large, late...)...), html: green + `<img src="/part/endless.png">`},
		{Name: "a script that is not answered", Codes: late, html: green + `<script src="/part/silent"></script>`},
		{Name: "events without end", Shows: true, html: green + `<script>new EventSource("/part/events").onmessage = (e) => document.title = e.data.length</script>`, Options: shot.Options{DelayMS: 1000}},
		{Name: "a bad chunk", Stands: true, Codes: append([]string{code.PageBadResponse}, lost...), handler: raw("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<p>Hi\r\nzz\r\nmore")},
		{Name: "a short answer", Codes: lost, handler: raw("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n" + green)},
		{Name: "a reset", Codes: lost, handler: raw("")},
		{Name: "not HTTP", Codes: append([]string{code.PageBadResponse}, lost...), handler: raw("SSH-2.0-OpenSSH_9.2\r\n")},
		{Name: "a name that does not resolve in time", Codes: []string{code.PageDNSError}, Host: "hangs.example", html: green, Options: shot.Options{TimeoutMS: 9000}},
		{Name: "a part whose name does not resolve in time", Codes: late, html: green + `<img src="http://hangs.example/">`, Options: shot.Options{TimeoutMS: 4000}},
		{Name: "a question for a password", Codes: []string{code.PageHTTP4XX}, handler: unauthorized},
		{Name: "parts that ask for passwords", Shows: true, html: green + strings.Repeat(`<img src="/part/unauthorized"><iframe src="/part/unauthorized"></iframe>`, 5)},
		{Name: "sockets without end", Stands: true, Shows: true, Codes: append(large, busy...), Or: true, html: green + `<script>
			const all = []; setInterval(() => { for (let n = 0; n < 20; n++) { const s = new WebSocket("ws" + location.origin.slice(4) + "/part/socket"); s.onopen = () => s.send("x"); all.push(s) } }, 50);
		</script>`, Options: shot.Options{DelayMS: 1000}},
		{Name: "requests without end", Shows: true, Codes: append(large, busy...), Or: true, html: green + `<script>setInterval(() => { for (let n = 0; n < 200; n++) fetch("/part/ok?" + Math.random()).catch(() => {}) }, 10)</script>`, Options: shot.Options{DelayMS: 2000}},
		{Name: "names without end", Codes: late, Or: true, Shows: true, html: green + `<script>for (let n = 0; n < 1000; n++) new Image().src = "http://" + n + ".example:" + location.port + "/part/ok"</script>`},
		{Name: "a header without end", Codes: append([]string{code.PageBadResponse}, lost...), handler: headers},
	}
}

func windows() []Page {
	return []Page{
		{Name: "a download", Stands: true, Codes: []string{code.PageIsDownload}, handler: download},
		{Name: "downloads by a script", Shows: true, html: green + `<a href="/part/download" download></a><script>for (let n = 0; n < 20; n++) document.querySelector("a").click()</script>`, Options: shot.Options{DelayMS: 500}},
		{Name: "windows without end", Stands: true, Shows: true, html: green + `<a href="/part/ok" target=_blank></a><script>
			for (let n = 0; n < 200; n++) { open("/part/ok?" + n); open("about:blank", "w" + n, "noopener"); document.querySelector("a").click() }
		</script>`, Options: shot.Options{Click: []string{"a"}}},
		{Name: "a window that closes itself", Codes: append([]string{code.PageCrashed}, late...), Or: true, Shows: true, html: green + `<script>setInterval(() => { window.close(); open("", "_self").close() }, 10)</script>`, Options: shot.Options{DelayMS: 500}},
		{Name: "a service worker", Shows: true, html: green + `<script>navigator.serviceWorker?.register("/part/worker.js").catch(() => {})</script>`, Options: shot.Options{DelayMS: 300}},
		{Name: "questions for permissions", Stands: true, Shows: true, html: green + `<script>
			document.documentElement.requestFullscreen().catch(() => {});
			navigator.geolocation?.getCurrentPosition(() => {});
			self.Notification?.requestPermission();
			navigator.mediaDevices?.getUserMedia({ video: true, audio: true }).catch(() => {});
			navigator.requestMIDIAccess?.().catch(() => {});
			navigator.clipboard?.readText().catch(() => {});
			document.body.requestPointerLock();
			self.showOpenFilePicker?.().catch(() => {});
			const pick = document.createElement("input"); pick.type = "file"; pick.click();
		</script>`},
		{Name: "other protocols", Shows: true, html: green + `<iframe src="file:///etc/passwd"></iframe><iframe src="chrome://crash"></iframe><script>
			for (const to of ["file:///etc/passwd", "chrome://crash", "chrome://settings", "view-source:http://page.example/", "mailto:x@y", "ftp://page.example/", "data:text/html,x", "devtools://devtools/"]) {
				try { location = to } catch {}
				open(to);
			}
		</script>`},
		{Name: "a page that leads to a file", Codes: []string{code.PageProtocolBlocked}, handler: redirectTo("file:///etc/passwd")},
	}
}

func drawing() []Page {
	return []Page{
		{Name: "60000 pixels", Stands: true, Shows: true, html: green + `<div style="height: 60000px; width: 50px; background: linear-gradient(blue, red)"></div>`, Options: shot.Options{FullPage: true, Width: 200, Height: 200, TimeoutMS: 30_000}},
		{Name: "millions of pixels", Codes: []string{code.PictureTooLarge}, html: green + `<div style="height: 30000000px; width: 30000000px"></div>`, Options: shot.Options{FullPage: true}},
		{Name: "a page that grows", Codes: append([]string{code.PictureTooLarge, code.PictureCut}, busy...), html: green + `<script>setInterval(() => { document.body.style.height = (document.body.offsetHeight + 500) + "px" }, 5)</script>`, Options: shot.Options{FullPage: true, Width: 100, Height: 100}},
		{Name: "a huge picture", Codes: anyEnd, Or: true, Shows: true, html: green + `<img src="/part/huge.png" width=100>`},
		{Name: "huge canvases", Codes: anyEnd, Or: true, Shows: true, html: green + `<script>
			for (let n = 0; n < 200; n++) { const c = document.createElement("canvas"); c.width = c.height = 8000; c.style.width = "10px"; document.body.append(c); const d = c.getContext("2d"); d.fillRect(0, 0, 8000, 8000); d.filter = "blur(50px)"; d.drawImage(c, 0, 0) }
		</script>`},
		{Name: "drawing in three dimensions", Shows: true, Codes: busy, Or: true, html: green + `<canvas></canvas><script>
			const gl = document.querySelector("canvas").getContext("webgl");
			if (gl) { const s = gl.createShader(gl.FRAGMENT_SHADER); gl.shaderSource(s, "void main() { for (int i = 0; i < 100000; i++) gl_FragColor += vec4(sin(float(i))); }"); gl.compileShader(s) }
			navigator.gpu?.requestAdapter().catch(() => {});
		</script>`},
		{Name: "layers without end", Codes: anyEnd, Or: true, html: green + `<style>i { position: absolute; inset: 0; will-change: transform; backdrop-filter: blur(40px); filter: blur(20px) }</style><script>
			for (let n = 0; n < 3000; n++) document.body.append(document.createElement("i"));
		</script>`},
		{Name: "a vector bomb", Codes: anyEnd, html: green + `<script>
			let svg = '<svg xmlns="http://www.w3.org/2000/svg"><g id="a0"><rect width="1" height="1"/></g>';
			for (let n = 1; n < 12; n++) svg += '<g id="a' + n + '">' + ('<use href="#a' + (n - 1) + '"/>').repeat(10) + "</g>";
			document.body.insertAdjacentHTML("beforeend", svg + "</svg>");
		</script>`},
		{Name: "a font that does not arrive", Codes: late, html: green + `<style>@font-face { font-family: a; src: url(/part/silent?font) } p { font-family: a }</style>`},
		{Name: "fonts without end", Stands: true, Shows: true, html: green + `<style>@font-face { font-family: a; src: url(/part/noise?font); font-display: block } p { font-family: a }</style><script>
			for (let n = 0; n < 100; n++) { const f = new FontFace("f" + n, "url(/part/noise?" + n + ")"); document.fonts.add(f); f.load().catch(() => {}) }
		</script>`},
		{Name: "animations without end", Shows: true, html: green + `<style>@keyframes m { to { transform: rotate(1turn) } } b { display: inline-block; animation: m 1s infinite }</style>` + strings.Repeat("<b>x</b>", 500), Codes: busy, Or: true},
		{Name: "a style that changes without end", Shows: true, Codes: busy, Or: true, html: green + `<script>
			new ResizeObserver(() => { document.querySelector("p").style.width = Math.random() * 500 + "px" }).observe(document.querySelector("p"));
		</script>`},
	}
}
