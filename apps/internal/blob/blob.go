// Package blob stores files for applications, in a folder or in S3-compatible object storage. A file exists completely or not at all and never changes: nothing is
// overwritten, unless the caller asks for that.
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

// Errors of a Store, besides those of the storage itself.
var (
	ErrNotFound = errors.New("there is no such file")
	ErrExists   = errors.New("the file exists already")
	ErrFull     = errors.New("the storage is full") // an early retry does not help
	ErrInvalid  = errors.New("the key or the metadata of the file is not valid")

	// Kinds of errors of object storage, to be found by errors.Is. An error of none of these kinds is a server error of the storage, or an error of the folder's disk.
	ErrNoBucket    = errors.New("the bucket does not exist: create it, or correct its name in s3://bucket/prefix")
	ErrDenied      = errors.New("the storage denied access")
	ErrBusy        = errors.New("the storage limits the rate of requests")
	ErrUnreachable = errors.New("the storage cannot be reached")
	ErrTimeout     = errors.New("the storage did not answer in time") // is also ErrUnreachable
	ErrRefused     = errors.New("the storage refused the request")    // any other answer 4xx
)

// A Store stores files by key. The application chooses the keys: segments of lower-case letters, digits, dots, dashes and underscores, separated by slashes; no segment
// begins or ends with a dot. A Store is safe for concurrent use.
type Store interface {
	// Put creates a file with everything that from returns. When Put returns nil, the file is durable; otherwise it does not exist. An error of from is
	// returned unchanged, so that the caller can distinguish it from an error of the storage. With ErrExists the existing file is unchanged.
	Put(ctx context.Context, key string, from io.Reader) (Info, error)
	// PutFile stores a file of this machine: without a copy on the way, and with a checksum that the storage verifies. It is no error if a file with this key and
	// the same content exists; with another content it is ErrExists, unless Content.Replace is set. A large file is sent in parts.
	PutFile(ctx context.Context, key string, c Content) (Info, error)
	// Open opens a file for reading, with Seek. It returns ErrNotFound if the file does not exist.
	Open(ctx context.Context, key string) (*File, error)
	// Stat describes a file without reading it. It returns ErrNotFound if the file does not exist.
	Stat(ctx context.Context, key string) (Info, error)
	// Delete deletes a file. It is no error if the file does not exist.
	Delete(ctx context.Context, key string) error
	// Older lists files that are older than a duration, including unfinished ones (see Info.Part), in a fixed order. It begins after the given key, which an
	// earlier list returned and whose file may be deleted by now; with an empty key it begins at the first file.
	Older(ctx context.Context, than time.Duration, after string) iter.Seq2[Info, error]
	// Sweep deletes what processes that were killed left unfinished, if it is older than a duration, and returns how many files that were.
	Sweep(ctx context.Context, than time.Duration) (int, error)
}

// Info describes a file.
type Info struct {
	Key    string
	Size   int64
	MadeAt time.Time
	Part   bool // an unfinished file, left by a process that was killed: it can be deleted, not opened
}

// A File is open for reading.
type File struct {
	io.ReadSeekCloser
	Info
}

// Open opens the store at a path or at s3://bucket/prefix. It creates a missing folder, and returns an error for a missing bucket.
func Open(ctx context.Context, place string) (Store, error) {
	if rest, ok := strings.CutPrefix(place, "s3://"); ok {
		return openBucket(ctx, rest)
	}
	if scheme, _, ok := strings.Cut(place, "://"); ok {
		return nil, fmt.Errorf("files cannot be stored at %s://...: use a folder, or s3://bucket/prefix", scheme)
	}
	return openFolder(place)
}

// Probe writes a small file and deletes it. An error means that the store cannot be written. The key should be one that a sweep of the application deletes if this
// call cannot.
func Probe(ctx context.Context, to Store, key string) error {
	if _, err := to.Put(ctx, key, strings.NewReader("ready?")); err != nil {
		return err
	}
	return to.Delete(ctx, key)
}
