// Package upload puts spool files into object storage or a folder, with a code for each way in which that can fail. An object appears whole or not at all.
package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/failure"
)

// Dependency is the name of the object storage as a dependency: in its breaker, in failures, in metrics and in the console.
const Dependency = "storage"

// An Object is a spool file that is to be stored.
type Object struct {
	Key     string
	File    spool.File
	Type    string            // media type
	Meta    map[string]string // stored with the object in a bucket, up to 2 KiB; a folder does not keep it
	Replace bool              // an object with this key and another content is replaced; otherwise that is UPLOAD_CONFLICT
}

// An Uploader puts objects into one store. It is safe for concurrent use.
type Uploader struct{ store blob.Store }

// New makes an Uploader to a store.
func New(store blob.Store) *Uploader { return &Uploader{store} }

// Put stores an object. It is no error if the same object is stored already. The error has a code of UPLOAD_, or STORAGE_SPOOL_LOST if the spool file is gone or was
// damaged: then the resource has to be downloaded again.
func (u *Uploader) Put(ctx context.Context, o Object) error {
	file, err := os.Open(o.File.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return failure.WithCode(errors.New("the spool file of the resource does not exist any more"), code.StorageSpoolLost)
	}
	if err != nil {
		return failure.WithCode(fmt.Errorf("the spool file cannot be opened: %w", withoutPath(err)), code.StorageSpoolError)
	}
	defer func() { _ = file.Close() }()
	_, err = u.store.PutFile(ctx, o.Key, blob.Content{From: file, Size: o.File.Size, SHA256: o.File.SHA256, CRC32C: o.File.CRC32C, Type: o.Type, Meta: o.Meta, Replace: o.Replace})
	if err != nil && !damaged(err, file, o.File) {
		return Classify(ctx, err)
	}
	if err != nil {
		return failure.WithCode(fmt.Errorf("the spool file changed: %w", err), code.StorageSpoolLost)
	}
	return nil
}

// damaged reports whether an upload failed because the spool file does not have its checksum any more. The storage says the same of bytes that changed on their way.
func damaged(err error, file *os.File, want spool.File) bool {
	if !errors.Is(err, blob.ErrChanged) {
		return false
	}
	sum, size, err := spool.Sum(file)
	return err != nil || sum != want.SHA256 || size != want.Size
}

// withoutPath returns the cause of an error of package os without the path.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// classes gives an error of a store its code (F4): network, 5xx and throttling are retried, AccessDenied and an invalid bucket are final.
var classes = []struct {
	kind error
	code string
}{
	{blob.ErrChanged, code.UploadWrongChecksum},
	{blob.ErrExists, code.UploadConflict},
	{blob.ErrInvalid, code.UploadInvalidKey},
	{blob.ErrNoBucket, code.UploadInvalidBucket},
	{blob.ErrDenied, code.UploadAccessDenied},
	{fs.ErrPermission, code.UploadAccessDenied},
	{blob.ErrFull, code.UploadStorageFull},
	{blob.ErrBusy, code.UploadThrottled},
	{blob.ErrTimeout, code.UploadTimeout},
	{context.DeadlineExceeded, code.UploadTimeout},
	{blob.ErrUnreachable, code.UploadNetworkError},
	{blob.ErrRefused, code.UploadRefused},
}

// Classify gives an error of the store its code of UPLOAD_.
func Classify(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err() // the worker stops or the job was cancelled: the engine knows which
	}
	name := code.UploadS3Error
	for _, c := range classes {
		if errors.Is(err, c.kind) {
			name = c.code
			break
		}
	}
	return failure.On(failure.WithCode(err, name), Dependency)
}

// Sweep deletes what uploads that began longer ago than age left unfinished, and returns how many. Call it when the process starts, with an age that no upload reaches.
func (u *Uploader) Sweep(ctx context.Context, age time.Duration) (int, error) {
	n, err := u.store.Sweep(ctx, age)
	if err != nil {
		err = Classify(ctx, err)
	}
	return n, err
}
