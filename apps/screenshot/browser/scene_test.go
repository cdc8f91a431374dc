package browser_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	_ "image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	_ "golang.org/x/image/webp"

	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// chromium returns the path of a real Chromium.
var chromium = sync.OnceValues(func() (string, error) {
	if path := browser.Find(); path != "chromium" {
		return path, nil
	}
	if path, err := exec.LookPath("chromium"); err == nil {
		return path, nil
	}
	return testprograms.Chromium.Ensure()
})

// A scene is a pool of real browsers. 127.0.0.1 stands for a public address; other private addresses stay private.
type scene struct {
	*testing.T
	pool *browser.Pool
}

// open opens a pool of one browser, which lives until the test ends.
func open(t *testing.T, change func(*browser.Config)) *scene {
	t.Helper()
	path, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "t") // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("the pool left files: %v, %v", left, err)
		}
		_ = os.RemoveAll(folder)
	})
	cfg := browser.Config{Path: path, Size: 1, Folder: folder, Guard: guard(t, nil)}
	cfg.Limits.Start = 2 * time.Minute // machines that run tests are busy
	if change != nil {
		change(&cfg)
	}
	pool, err := browser.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &scene{t, pool}
}

func guard(t *testing.T, lookup func(context.Context, string) ([]netip.Addr, error)) *safehttp.Guard {
	t.Helper()
	if lookup == nil {
		lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			if strings.HasSuffix(host, ".example") {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
	}
	g, err := safehttp.New(safehttp.Config{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// take takes a picture that must succeed.
func (s *scene) take(o shot.Options) *shot.Picture {
	s.Helper()
	p, err := s.try(o)
	if err != nil {
		s.Fatalf("%s: %v", code.Name(err), err)
	}
	return p
}

// try takes a picture, with the longest time limit if the options have none.
func (s *scene) try(o shot.Options) (*shot.Picture, error) {
	s.Helper()
	if o.TimeoutMS == 0 {
		o.TimeoutMS = 60_000
	}
	return s.pool.Take(s.Context(), o)
}

// fails takes a picture that must fail with a code.
func (s *scene) fails(want string, o shot.Options) error {
	s.Helper()
	p, err := s.try(o)
	if err == nil {
		s.Errorf("a picture instead of %s: %+v", want, p.Facts)
	} else if got := code.Name(err); got != want {
		s.Errorf("%s instead of %s: %v", got, want, err)
	}
	return err
}

// decode returns the pixels of a picture.
func (s *scene) decode(p *shot.Picture) image.Image {
	s.Helper()
	m, format, err := image.Decode(bytes.NewReader(p.Data))
	if err != nil || format != string(p.Format) {
		s.Fatalf("%s: %v", format, err)
	}
	if size := m.Bounds().Size(); size != (image.Point{p.Facts.Width, p.Facts.Height}) || len(p.Data) != p.Facts.Bytes {
		s.Errorf("%v and %d bytes are not what the facts say: %+v", size, len(p.Data), p.Facts)
	}
	if p.Format == shot.WebP {
		return webp{m}
	}
	return m
}

// is compares a pixel with a colour, with the tolerance of lossy formats.
func is(m image.Image, x, y int, want color.Color) error {
	at := m.At(x, y)
	if c, ok := at.(color.YCbCr); ok && studioRange(m) {
		at = color.YCbCr{stretch(c.Y, 16, 219), stretch(c.Cb, 128-112, 224), stretch(c.Cr, 128-112, 224)}
	}
	r, g, b, _ := at.RGBA()
	wr, wg, wb, _ := want.RGBA()
	for _, d := range []int{int(r) - int(wr), int(g) - int(wg), int(b) - int(wb)} {
		if d > 0x0c00 || d < -0x0c00 {
			return fmt.Errorf("the pixel at %d, %d is %v instead of %v", x, y, m.At(x, y), want)
		}
	}
	return nil
}

// studioRange reports whether a picture was decoded from WebP: there white is 235 and black is 16, which the decoder does not say.
func studioRange(m image.Image) bool {
	_, ok := m.(webp)
	return ok
}

// A webp is a picture that was decoded from WebP.
type webp struct{ image.Image }

func stretch(value byte, lowest, span int) byte {
	return byte(min(max((int(value)-lowest)*255/span, 0), 255))
}

func (s *scene) shows(p *shot.Picture, x, y int, want color.Color) {
	s.Helper()
	if err := is(s.decode(p), x, y, want); err != nil {
		s.Error(err)
	}
}

var (
	red   = color.RGBA{255, 0, 0, 255}
	green = color.RGBA{0, 128, 0, 255}
	blue  = color.RGBA{0, 0, 255, 255}
	white = color.RGBA{255, 255, 255, 255}
)

// serve serves pages by path. Its address is a name that stands for a public host.
func serve(t *testing.T, pages map[string]http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := pages[r.URL.Path]
		if page == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	return "http://page.example:" + port
}

func text(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, content) }
}

func hasField(err error, field string) bool {
	var bad shot.FieldErrors
	return errors.As(err, &bad) && bad[0].Field == field
}
