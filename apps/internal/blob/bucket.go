package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
)

// A bucket stores files in S3-compatible object storage, under a prefix.
type bucket struct {
	s3       *minio.Core
	name     string
	prefix   string        // empty, or with a slash at its end
	private  bool          // the connection is encrypted, or does not leave this machine
	checking chan struct{} // capacity 1: held by the caller that checks the storage
	checked  atomic.Bool   // the storage was seen to refuse an overwrite
}

// marker is an object that no key can name. It serves to check that the storage refuses to overwrite it.
const marker = ".holdfast"

// putMark is the metadata by which a writer recognises its own file.
const putMark = "Holdfast-Put"

func (b *bucket) Put(ctx context.Context, key string, from io.Reader) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	spool, size, err := spoolAll(ctx, from)
	if err != nil {
		return Info{}, err
	}
	defer spool.remove()
	if err := b.checkConditionalWrites(ctx); err != nil {
		return Info{}, err
	}
	if err := b.create(ctx, key, io.NewSectionReader(spool.File, 0, size)); err != nil {
		return Info{}, err
	}
	return Info{Key: key, Size: size, MadeAt: time.Now()}, nil
}

// newMark returns the value of a writer's putMark.
func newMark() string { return rand.Text() }

// create creates an object unless it exists, in one conditional request. The storage does it completely or not at all.
func (b *bucket) create(ctx context.Context, key string, from *io.SectionReader) error {
	mark := newMark()
	o := minio.PutObjectOptions{
		ContentType:      "application/octet-stream",
		UserMetadata:     map[string]string{putMark: mark},
		DisableMultipart: true, // parts of a multipart upload would stay if this process died
		SendContentMd5:   true,
	}
	o.SetMatchETagExcept("*")
	if _, err := b.s3.Client.PutObject(ctx, b.name, b.prefix+key, from, from.Size(), o); err != nil {
		return b.resolvePut(ctx, key, mark, err)
	}
	return nil
}

// resolvePut finds out whether a file exists whose creation returned an error. The answer to a successful request may have been lost, and then the client's retry meets its
// own file.
func (b *bucket) resolvePut(ctx context.Context, key, mark string, err error) error {
	answer, answered := errors.AsType[minio.ErrorResponse](err)
	taken := answered && (answer.StatusCode == http.StatusPreconditionFailed || answer.StatusCode == http.StatusConflict)
	if answered && !taken && answer.StatusCode < 500 && answer.Code != minio.NoSuchUpload { // the last also answers a repeated request whose first answer was lost
		return bucketError("cannot store a file", err)
	}
	askCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	found, unknown := b.s3.StatObject(askCtx, b.name, b.prefix+key, minio.StatObjectOptions{})
	switch {
	case unknown == nil && found.UserMetadata[putMark] == mark:
		return nil
	case ctx.Err() == nil && (unknown == nil || answer.StatusCode == http.StatusPreconditionFailed):
		return ErrExists // a storage that answers before it has read everything may close the connection before the answer arrives
	}
	return bucketError("cannot store a file", err)
}

// checkConditionalWrites checks once, before the first file is stored, that the storage refuses to overwrite an object: some ignore the condition and overwrite.
func (b *bucket) checkConditionalWrites(ctx context.Context) error {
	if b.checked.Load() {
		return nil
	}
	select {
	case b.checking <- struct{}{}:
		defer func() { <-b.checking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for range 2 {
		if b.checked.Load() {
			return nil
		}
		err := b.create(ctx, marker, io.NewSectionReader(strings.NewReader(""), 0, 0))
		if errors.Is(err, ErrExists) {
			b.checked.Store(true)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("this storage ignores If-None-Match and overwrites files: use one that supports conditional writes")
}

func (b *bucket) Stat(ctx context.Context, key string) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	o, err := b.s3.StatObject(ctx, b.name, b.prefix+key, minio.StatObjectOptions{})
	if err = bucketError("cannot check a file", err); errors.Is(err, ErrNotFound) {
		// An answer to HEAD has no body, so it does not say whether the file or the bucket is missing.
		if err := b.exists(ctx); err != nil {
			return Info{}, err
		}
	}
	if err != nil {
		return Info{}, err
	}
	return Info{Key: key, Size: o.Size, MadeAt: o.LastModified}, nil
}

func (b *bucket) exists(ctx context.Context) error {
	found, err := b.s3.BucketExists(ctx, b.name)
	if err != nil {
		return bucketError("cannot check the bucket", err)
	}
	if !found {
		return ErrNoBucket
	}
	return nil
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := checkListed(key); err != nil {
		return err
	}
	err := bucketError("cannot delete a file", b.s3.RemoveObject(ctx, b.name, b.prefix+key, minio.RemoveObjectOptions{}))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Older never lists unfinished files: Sweep finds them.
func (b *bucket) Older(ctx context.Context, than time.Duration, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		o := minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}
		if after != "" {
			if err := checkListed(after); err != nil {
				yield(Info{}, fmt.Errorf("a list cannot begin after this key: %w", err))
				return
			}
			o.StartAfter = b.prefix + after
		}
		before := time.Now().Add(-than)
		for object := range b.s3.ListObjectsIter(ctx, b.name, o) {
			if object.Err != nil {
				yield(Info{}, bucketError("cannot list files", object.Err))
				return
			}
			info := Info{Key: strings.TrimPrefix(object.Key, b.prefix), Size: object.Size, MadeAt: object.LastModified}
			if checkKey(info.Key) == nil && info.MadeAt.Before(before) && !yield(info, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Info{}, err)
		}
	}
}

// A spool is a temporary file on this machine.
type spool struct{ *os.File }

// spoolAll copies everything to a temporary file, so that the upload to the storage starts only when the file is complete and its size is known.
func spoolAll(ctx context.Context, from io.Reader) (spool, int64, error) {
	file, err := os.CreateTemp("", "holdfast-*")
	if err != nil {
		return spool{}, 0, folderError("cannot create a temporary file", err)
	}
	s := spool{file}
	if runtime.GOOS != "windows" {
		_ = os.Remove(file.Name()) // it exists as long as it is open: a killed process leaves nothing
	}
	complete := false
	defer func() {
		if !complete {
			s.remove()
		}
	}()
	size, err := copyAll(ctx, file, from)
	complete = err == nil
	return s, size, err
}

func (s spool) remove() {
	_ = s.Close()
	if runtime.GOOS == "windows" {
		_ = os.Remove(s.Name())
	}
}
