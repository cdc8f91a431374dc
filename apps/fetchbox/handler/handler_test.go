package handler_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/handler"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/kind/execjob"
	"github.com/holdfastdev/holdfast/store"
)

func TestMain(m *testing.M) {
	execjob.Main()
	os.Exit(m.Run())
}

func input(t *testing.T, text []byte) handler.Input {
	t.Helper()
	path := filepath.Join(t.TempDir(), "resource")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return handler.Input{File: spool.File{Name: "job", Path: path, Size: int64(len(text))}}
}

func handle(t *testing.T, h handler.Handler, in handler.Input) (handler.Output, error) {
	t.Helper()
	return handler.Set{"h": h}.Handle(t.Context(), "h", in)
}

// wantRefusal checks that an error is final and has a code.
func wantRefusal(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: accepted", name)
		return
	}
	v := failure.Decide(failure.Rules{Taxonomy: code.Taxonomy(), Policy: code.Limits{}.Policy()}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
	if v.To != holdfast.Failed || v.Failure.Code != want {
		t.Errorf("%s: %s, %s: %v", name, v.Failure.Code, v.To, err)
	}
}

// picture returns an image in a format.
func picture(t *testing.T, format string) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 31, 17), color.Palette{color.Gray{}, color.Gray{Y: 200}})
	for n := range img.Pix {
		img.Pix[n] = byte(n * 7 % 2)
	}
	var to bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&to, img)
	case "jpeg":
		err = jpeg.Encode(&to, img, nil)
	case "gif":
		err = gif.Encode(&to, img, nil)
	case "bmp":
		err = bmp.Encode(&to, img)
	case "tiff":
		err = tiff.Encode(&to, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func TestImagesAreRecognisedByTheirBytes(t *testing.T) {
	for _, format := range []string{"png", "jpeg", "gif", "bmp", "tiff"} {
		in := input(t, picture(t, format))
		in.Type = "text/plain"
		out, err := handle(t, handler.Image{}, in)
		if err != nil || out.Type != "image/"+format || out.Meta["width"] != "31" || out.Meta["height"] != "17" {
			t.Errorf("%s: %+v, %v", format, out, err)
		}
	}
	// A lossless WebP image of 1 x 1 pixels.
	webp := "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"
	if out, err := handle(t, handler.Image{}, input(t, []byte(webp))); err != nil || out.Type != "image/webp" || out.Meta["width"] != "1" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestWhatIsNoWholeImageIsRefused(t *testing.T) {
	page := []byte("<!DOCTYPE html><html><body><img src=x.png></body></html>")
	in := input(t, page)
	in.Type = "image/png"
	_, err := handle(t, handler.Image{}, in)
	wantRefusal(t, "an HTML page that claims to be an image", err, code.HandlerNotAnImage)
	for _, text := range [][]byte{nil, []byte("\x89PNG\r\n\x1a\n"), []byte("GIF89a"), []byte("\xff\xd8\xff"), []byte("BM"), []byte("RIFF\x00\x00\x00\x00WEBPVP8 ")} {
		_, err := handle(t, handler.Image{}, input(t, text))
		wantRefusal(t, fmt.Sprintf("%q", text), err, code.HandlerNotAnImage)
	}
	for _, format := range []string{"png", "jpeg", "gif", "bmp"} {
		whole := picture(t, format)
		for _, size := range []int{len(whole) - 4, len(whole) / 2} {
			_, err := handle(t, handler.Image{}, input(t, whole[:size]))
			wantRefusal(t, fmt.Sprintf("%s cut to %d of %d bytes", format, size, len(whole)), err, code.HandlerNotAnImage)
		}
	}
	damaged := picture(t, "png")
	damaged[len(damaged)-20] ^= 0xff
	_, err = handle(t, handler.Image{}, input(t, damaged))
	wantRefusal(t, "a damaged PNG", err, code.HandlerNotAnImage)
	_, err = handle(t, handler.Image{MaxPixels: 500}, input(t, picture(t, "png")))
	wantRefusal(t, "too many pixels", err, code.HandlerLimit)
}

func zipOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var to bytes.Buffer
	w := zip.NewWriter(&to)
	for _, name := range names {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(f, "0123456789")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func tarOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var to bytes.Buffer
	w := tar.NewWriter(&to)
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: 10, Mode: 0o600, Format: tar.FormatUSTAR}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, "0123456789")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func gzipped(text []byte) []byte {
	var to bytes.Buffer
	w := gzip.NewWriter(&to)
	_, _ = w.Write(text)
	_ = w.Close()
	return to.Bytes()
}

func TestArchivesAreListedWithoutUnpacking(t *testing.T) {
	names := []string{"a.txt", "dir/b.txt", "../../etc/passwd"}
	for format, text := range map[string][]byte{"zip": zipOf(t, names...), "tar": tarOf(t, names...), "tar.gz": gzipped(tarOf(t, names...))} {
		out, err := handle(t, handler.ArchiveList{}, input(t, text))
		if err != nil || out.Meta["format"] != format || out.Meta["entries"] != "3" || out.Meta["unpacked"] != "30" || out.Meta["unsafe-names"] != "1" ||
			out.Meta["names"] != `["a.txt","dir/b.txt","../../etc/passwd"]` {
			t.Errorf("%s: %+v, %v", format, out, err)
		}
	}
}

func TestDamagedAndHugeArchivesAreRefused(t *testing.T) {
	whole, packed := zipOf(t, "a", "b"), gzipped(tarOf(t, "a", "b"))
	large := make([]byte, 20<<20)
	copy(large, tarOf(t, "a"))
	for name, c := range map[string]struct {
		text []byte
		h    handler.ArchiveList
		code string
	}{
		"no archive":            {[]byte("<html>"), handler.ArchiveList{}, code.HandlerNotAnArchive},
		"nothing":               {nil, handler.ArchiveList{}, code.HandlerNotAnArchive},
		"a cut zip":             {whole[:len(whole)-10], handler.ArchiveList{}, code.HandlerNotAnArchive},
		"a cut tar":             {tarOf(t, "a", "b")[:700], handler.ArchiveList{}, code.HandlerNotAnArchive},
		"a cut tar.gz":          {packed[:len(packed)-10], handler.ArchiveList{}, code.HandlerNotAnArchive},
		"a wrong checksum":      {append(packed[:len(packed)-8:len(packed)-8], make([]byte, 8)...), handler.ArchiveList{}, code.HandlerNotAnArchive},
		"gzip of no archive":    {gzipped([]byte("hello")), handler.ArchiveList{}, code.HandlerNotAnArchive},
		"too many entries":      {zipOf(t, "a", "b", "c"), handler.ArchiveList{MaxEntries: 2}, code.HandlerLimit},
		"unpacks to too much":   {zipOf(t, "a", "b", "c"), handler.ArchiveList{MaxUnpacked: 29}, code.HandlerLimit},
		"a bomb":                {gzipped(large), handler.ArchiveList{MaxRead: 1 << 20}, code.HandlerLimit},
		"a directory too large": {largeDirectory(whole), handler.ArchiveList{}, code.HandlerLimit},
	} {
		_, err := handle(t, c.h, input(t, c.text))
		wantRefusal(t, name, err, c.code)
	}
}

// largeDirectory makes a zip archive announce a directory of 1 GiB.
func largeDirectory(whole []byte) []byte {
	text := bytes.Clone(whole)
	at := bytes.LastIndex(text, []byte("PK\x05\x06"))
	copy(text[at+12:], "\x00\x00\x00\x40")
	return text
}

// script writes a program.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func running(t *testing.T, p execjob.Program) handler.Handler {
	t.Helper()
	h, err := handler.Exec(p)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAProgramAcceptsOrRefusesAResource(t *testing.T) {
	in := input(t, []byte("hello"))
	accepts := running(t, execjob.Program{Path: script(t, `cmp - "$1" && echo "{\"bytes\": \"$(wc -c <"$1" | tr -d ' ')\"}"`), Env: []string{"PATH"}})
	if out, err := handle(t, accepts, in); err != nil || out.Meta["bytes"] != "5" {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := handle(t, running(t, execjob.Program{Path: "/bin/true"}), in); err != nil || out.Meta != nil {
		t.Errorf("%+v, %v", out, err)
	}
	_, err := handle(t, running(t, execjob.Program{Path: script(t, "echo 'it is a virus' >&2; exit 3")}), in)
	wantRefusal(t, "exit code 3", err, code.HandlerRefused)
	if err == nil || !strings.Contains(err.Error(), "it is a virus") {
		t.Errorf("%v", err)
	}
	for name, c := range map[string]struct {
		program execjob.Program
		code    string
	}{
		"a program that hangs":     {execjob.Program{Path: script(t, "sleep 600"), Timeout: 200 * time.Millisecond, Env: []string{"PATH"}}, code.HandlerTimeout},
		"a program that is killed": {execjob.Program{Path: script(t, "kill -9 $$")}, code.HandlerError},
		"output that is no JSON":   {execjob.Program{Path: script(t, "echo hello")}, code.HandlerError},
	} {
		_, err := handle(t, running(t, c.program), in)
		wantRefusal(t, name, err, c.code)
	}
	if _, err := handler.Exec(execjob.Program{Path: "/nowhere"}); err == nil {
		t.Error("a program that does not exist was accepted")
	}
}

func TestEveryErrorOfAHandlerIsFinalAndHasACode(t *testing.T) {
	in := input(t, nil)
	panics := handler.Func(func(context.Context, handler.Input) (handler.Output, error) { panic("oh") })
	_, err := handle(t, panics, in)
	wantRefusal(t, "a panic", err, code.HandlerError)
	fails := handler.Func(func(context.Context, handler.Input) (handler.Output, error) {
		return handler.Output{}, errors.New("oh")
	})
	_, err = handle(t, fails, in)
	wantRefusal(t, "an error without a code", err, code.HandlerError)
	_, err = handler.Standard().Handle(t.Context(), "thumbnail", in)
	wantRefusal(t, "an unknown handler", err, code.HandlerRefused)
	_, err = handle(t, handler.Require(handler.Func(handler.Raw), "title"), in)
	wantRefusal(t, "missing metadata", err, code.HandlerMissingMetadata)
	in.Meta = map[string]string{"title": "x"}
	if _, err = handle(t, handler.Require(handler.Func(handler.Raw), "title"), in); err != nil {
		t.Error(err)
	}
	if _, err := handler.Standard().Handle(t.Context(), "", in); err != nil {
		t.Errorf("raw is the default: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ends := handler.Func(func(ctx context.Context, _ handler.Input) (handler.Output, error) { return handler.Output{}, ctx.Err() })
	if _, err := (handler.Set{"h": ends}).Handle(ctx, "h", in); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

func TestASpoolFileThatIsGoneIsNoRefusal(t *testing.T) {
	in := input(t, nil)
	_ = os.Remove(in.File.Path)
	for _, h := range handler.Standard() {
		_, err := handle(t, h, in)
		if err == nil {
			continue // raw reads nothing
		}
		v := failure.Decide(failure.Rules{Taxonomy: code.Taxonomy(), Policy: code.Limits{}.Policy()}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
		if v.To != holdfast.Queued || v.Failure.Code != code.StorageSpoolLost {
			t.Errorf("%+v", v)
		}
	}
}
