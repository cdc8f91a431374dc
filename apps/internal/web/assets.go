package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

// assetTypes are the files that are served. Others, such as templates, are not.
var assetTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// Assets are the style sheets, scripts and images of a page. The version is a hash of all files of the folder.
type Assets struct {
	version string
	files   map[string][]byte
	missing http.HandlerFunc
}

// NewAssets reads a folder of files that are embedded in the program. missing answers requests for other files.
func NewAssets(from fs.FS, folder string, missing http.HandlerFunc) *Assets {
	s := &Assets{files: map[string][]byte{}, missing: missing}
	entries, err := fs.ReadDir(from, folder)
	sum := sha256.New()
	for _, entry := range entries {
		text, failed := fs.ReadFile(from, path.Join(folder, entry.Name()))
		if err = failed; err != nil {
			break
		}
		_, _ = sum.Write(text) // Write of a hash never fails
		if assetTypes[path.Ext(entry.Name())] != "" {
			s.files[entry.Name()] = text
		}
	}
	if err != nil {
		panic(err) // the files are embedded in the program
	}
	s.version = hex.EncodeToString(sum.Sum(nil)[:8])
	return s
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
