// Package blob keeps files for applications, in a folder or in S3-compatible object storage. A file is there whole or not at all, and stays as it
// was made: nothing is ever overwritten.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// What can be in the way, besides the storage itself.
var (
	ErrNotFound = errors.New("there is no such file")
	ErrExists   = errors.New("there is such a file already")
	ErrFull     = errors.New("there is no room for more files") // trying again soon is no use
)

// A Store keeps files by key. Keys are made by the application: segments of lower-case letters, digits, dots, dashes and underscores, with slashes between
// them, none beginning with a dot.
type Store interface {
	// Put makes a file of all that from holds. When it returns nil the file is durable; otherwise there is none. A failure of from is
	// returned as it is, so that whoever made it can tell it from one of the storage. ErrExists leaves the other file as it is.
	Put(ctx context.Context, key string, from io.Reader) (Info, error)
	// Open reads a file, from any place in it. ErrNotFound when there is none.
	Open(ctx context.Context, key string) (*File, error)
	// Stat tells of a file without reading it. ErrNotFound when there is none.
	Stat(ctx context.Context, key string) (Info, error)
	// Delete removes a file. One that is not there is no error.
	Delete(ctx context.Context, key string) error
	// Older lists files that were made longer ago than that, those that were never finished among them (see Info.Part), in an order of its own that
	// stays the same. It begins after the key of a file that was listed before, whether or not that is still there; at the beginning without one.
	Older(ctx context.Context, than time.Duration, after string) iter.Seq2[Info, error]
}

// Info is what is known of a file.
type Info struct {
	Key    string
	Size   int64
	MadeAt time.Time
	Part   bool // somebody began it and was stopped: it may be deleted, and cannot be opened
}

// A File is open for reading.
type File struct {
	io.ReadSeekCloser
	Info
}

// Open opens the store at a place: a path, or s3://bucket/prefix. It makes a folder that is missing, and asks a bucket whether it is there.
func Open(ctx context.Context, place string) (Store, error) {
	if rest, ok := strings.CutPrefix(place, "s3://"); ok {
		return openBucket(ctx, rest)
	}
	if scheme, _, ok := strings.Cut(place, "://"); ok {
		return nil, fmt.Errorf("files cannot be kept at %s://...: give a folder, or s3://bucket/prefix", scheme)
	}
	return openFolder(place)
}
