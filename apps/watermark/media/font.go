package media

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/image/font/sfnt"

	"github.com/holdfastdev/holdfast/apps/watermark/code"
)

// fontFolders are where systems keep their fonts.
var fontFolders = []string{"/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts", "/System/Library/Fonts", `C:\Windows\Fonts`}

const maxFont = 40 << 20 // bytes

// FontFor returns a font that has all characters of a text, from some folders, or those of the system if there are none. Plain fonts come before bold and slanted ones.
func FontFor(text string, folders []string) (string, error) {
	if len(folders) == 0 {
		folders = fontFolders
	}
	var paths []string
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && isFont(path) {
				paths = append(paths, path)
			}
			return nil
		})
	}
	slices.SortStableFunc(paths, func(a, b string) int { return fontRank(a) - fontRank(b) })
	for _, path := range paths {
		if covers(path, text) {
			return path, nil
		}
	}
	return "", code.New(code.InputText, fmt.Errorf("none of %d fonts has all characters of %.60q", len(paths), text))
}

func isFont(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".ttf", ".otf", ".ttc", ".otc":
		return true
	}
	return false
}

// fontRank orders fonts by how plain their names are.
func fontRank(path string) (rank int) {
	name := strings.ToLower(filepath.Base(path))
	if !strings.Contains(name, "sans") {
		rank += 2
	}
	if !strings.Contains(name, "regular") && !strings.HasPrefix(name, "dejavusans.") {
		rank++
	}
	for _, style := range []string{"bold", "italic", "oblique", "light", "thin", "black", "mono", "serif", "condensed", "symbol", "emoji", "math"} {
		if strings.Contains(name, style) {
			rank += 10
		}
	}
	return rank
}

// covers reports whether a font has all characters of a text.
func covers(path, text string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxFont {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	fonts, err := sfnt.ParseCollection(data)
	if err != nil || fonts.NumFonts() == 0 {
		return false
	}
	font, err := fonts.Font(0) // FFmpeg uses the first
	if err != nil {
		return false
	}
	var buffer sfnt.Buffer
	for _, c := range oneLine(text) {
		if unicode.IsSpace(c) || unicode.Is(unicode.Cf, c) {
			continue
		}
		if glyph, err := font.GlyphIndex(&buffer, c); err != nil || glyph == 0 {
			return false
		}
	}
	return true
}
