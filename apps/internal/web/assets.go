package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"path"
	"time"
)

// assetTypes are the files that are served. Others, such as templates, are not.
var assetTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// base is the files that the pages of applications share: base.css; theme.js, which chooses the theme; and live.js, which keeps a page up to date. A file of an application
// with the same name takes the place of one of these.
//
//go:embed base
var base embed.FS

// Assets are the style sheets, scripts and images of a page, with those that all pages share. The version is a hash of all files.
type Assets struct {
	version string
	files   map[string][]byte
	missing http.HandlerFunc
}

// NewAssets reads a folder of files that are embedded in the program. missing answers requests for other files.
func NewAssets(from fs.FS, folder string, missing http.HandlerFunc) *Assets {
	s := &Assets{files: map[string][]byte{}, missing: missing}
	sum := sha256.New()
	for _, place := range []struct {
		files  fs.FS
		folder string
	}{{base, "base"}, {from, folder}} {
		if err := s.read(place.files, place.folder, sum); err != nil {
			panic(err) // the files are embedded in the program
		}
	}
	s.version = hex.EncodeToString(sum.Sum(nil)[:8])
	return s
}

func (s *Assets) read(from fs.FS, folder string, sum io.Writer) error {
	entries, err := fs.ReadDir(from, folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := fs.ReadFile(from, path.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		_, _ = sum.Write(text) // Write of a hash never fails
		if assetTypes[path.Ext(entry.Name())] != "" {
			s.files[entry.Name()] = text
		}
	}
	return nil
}

// Path returns the folder of the assets for pages.
func (s *Assets) Path() string { return "/assets/" + s.version }

// ServeHTTP serves /assets/{version}/{name}. Under the current version a file never changes and browsers may cache it. Under any other version it serves the current
// file without caching, so that a page that was loaded before an update still works.
func (s *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, ok := s.files[name]
	if !ok {
		s.missing(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", assetTypes[path.Ext(name)])
	header.Set("ETag", `"`+s.version+`"`)
	header.Set("Cache-Control", "no-cache")
	if r.PathValue("version") == s.version {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
}
