package pdf

import (
	"context"
	"os"
)

const (
	defaultPages = 2000
	defaultText  = 64 << 20
)

// Limits limit what is read of a PDF. Zero fields mean the defaults.
type Limits struct {
	Pages int   // 2000 when zero
	Text  int64 // bytes of text in all; 64 MiB when zero
}

// A Reader reads a PDF.
type Reader interface {
	Name() string // "poppler" or "go"
	Read(ctx context.Context, file *os.File, l Limits) (*Document, error)
}

// Readers returns the available readers, the best first: poppler if it is installed, then the reader of this package.
func Readers() []Reader {
	if p, err := findPoppler(); err == nil {
		return []Reader{p, goReader{}}
	}
	return []Reader{goReader{}}
}

// Find returns the reader with a name, or the best one if the name is empty.
func Find(name string) (Reader, error) {
	for _, r := range Readers() {
		if name == "" || r.Name() == name {
			return r, nil
		}
	}
	if name == "poppler" {
		return nil, ErrNoPoppler
	}
	return nil, ErrNoReader
}
