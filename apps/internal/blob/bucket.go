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

// A bucket keeps files in S3-compatible object storage, under a prefix.
type bucket struct {
	s3     *minio.Core
	name   string
	prefix string        // empty, or with a slash at its end
	turn   chan struct{} // of one, for who tries out the storage
	honest atomic.Bool   // it was seen to refuse what would overwrite
}

// marker is an object that no key can name, for trying out what the storage does with what would overwrite it.
const marker = ".holdfast"

// putMark is the metadata by which a writer knows its own file again.
const putMark = "Holdfast-Put"

func (b *bucket) Put(ctx context.Context, key string, from io.Reader) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	spool, size, err := setAside(ctx, from)
	if err != nil {
		return Info{}, err
	}
	defer spool.drop()
	if err := b.check(ctx); err != nil {
		return Info{}, err
	}
	if err := b.make(ctx, key, io.NewSectionReader(spool.File, 0, size)); err != nil {
		return Info{}, err
	}
	return Info{Key: key, Size: size, MadeAt: time.Now()}, nil
}

// make asks for one thing: make this, unless it is there. The storage does it whole or not at all.
func (b *bucket) make(ctx context.Context, key string, from *io.SectionReader) error {
	mark := rand.Text()
	o := minio.PutObjectOptions{
		ContentType:      "application/octet-stream",
		UserMetadata:     map[string]string{putMark: mark},
		DisableMultipart: true, // parts of uploads would stay when this process dies
		SendContentMd5:   true,
	}
	o.SetMatchETagExcept("*")
	if _, err := b.s3.Client.PutObject(ctx, b.name, b.prefix+key, from, from.Size(), o); err != nil {
		return b.outcome(ctx, key, mark, err)
	}
	return nil
}

// outcome says what became of a file whose making was answered with an error. The answer to one that was made may have been lost, and a client that
// asks again then meets its own file.
func (b *bucket) outcome(ctx context.Context, key, mark string, err error) error {
	answer, answered := errors.AsType[minio.ErrorResponse](err)
	taken := answered && (answer.StatusCode == http.StatusPreconditionFailed || answer.StatusCode == http.StatusConflict)
	if answered && !taken && answer.StatusCode < 500 {
		return refusal("a file could not be stored", err)
	}
	ask, enough := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer enough()
	there, unknown := b.s3.StatObject(ask, b.name, b.prefix+key, minio.StatObjectOptions{})
	switch {
	case unknown == nil && there.UserMetadata[putMark] == mark:
		return nil
	case ctx.Err() == nil && (unknown == nil || answer.StatusCode == http.StatusPreconditionFailed):
		return ErrExists // a storage that says so before it has read all may hang up before that is heard
	}
	return refusal("a file could not be stored", err)
}

// check tries once, before anything is stored, whether the storage keeps what it has: some do not know the condition and overwrite.
func (b *bucket) check(ctx context.Context) error {
	if b.honest.Load() {
		return nil
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for range 2 {
		if b.honest.Load() {
			return nil
		}
		err := b.make(ctx, marker, io.NewSectionReader(strings.NewReader(""), 0, 0))
		if errors.Is(err, ErrExists) {
			b.honest.Store(true)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("this storage overwrites files although it was asked not to (If-None-Match): use one that has conditional writes")
}

func (b *bucket) Stat(ctx context.Context, key string) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	o, err := b.s3.StatObject(ctx, b.name, b.prefix+key, minio.StatObjectOptions{})
	if err = refusal("a file could not be looked at", err); errors.Is(err, ErrNotFound) {
		// An answer without a body cannot say whether the file is missing or the bucket.
		if err := b.there(ctx); err != nil {
			return Info{}, err
		}
	}
	if err != nil {
		return Info{}, err
	}
	return Info{Key: key, Size: o.Size, MadeAt: o.LastModified}, nil
}

func (b *bucket) there(ctx context.Context) error {
	there, err := b.s3.BucketExists(ctx, b.name)
	if err != nil {
		return refusal("the bucket could not be asked for", err)
	}
	if !there {
		return errNoBucket
	}
	return nil
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := checkListed(key); err != nil {
		return err
	}
	err := refusal("a file could not be deleted", b.s3.RemoveObject(ctx, b.name, b.prefix+key, minio.RemoveObjectOptions{}))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Older never lists parts: a bucket has none.
func (b *bucket) Older(ctx context.Context, than time.Duration, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		ctx, enough := context.WithCancel(ctx)
		defer enough()
		o := minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}
		if after != "" {
			if err := checkListed(after); err != nil {
				yield(Info{}, fmt.Errorf("a list cannot begin there: %w", err))
				return
			}
			o.StartAfter = b.prefix + after
		}
		before := time.Now().Add(-than)
		for object := range b.s3.ListObjectsIter(ctx, b.name, o) {
			if object.Err != nil {
				yield(Info{}, refusal("files could not be listed", object.Err))
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

// A spool is a file on this machine that nobody sees.
type spool struct{ *os.File }

// setAside takes all that from holds, so that the storage is asked only when it is known to be whole, and how much it is.
func setAside(ctx context.Context, from io.Reader) (spool, int64, error) {
	file, err := os.CreateTemp("", "holdfast-*")
	if err != nil {
		return spool{}, 0, trouble("a file could not be set aside", err)
	}
	s := spool{file}
	if runtime.GOOS != "windows" {
		_ = os.Remove(file.Name()) // it lives as long as it is open: whoever is killed leaves nothing
	}
	whole := false
	defer func() {
		if !whole {
			s.drop()
		}
	}()
	size, err := pour(ctx, file, from)
	whole = err == nil
	return s, size, err
}

func (s spool) drop() {
	_ = s.Close()
	if runtime.GOOS == "windows" {
		_ = os.Remove(s.Name())
	}
}
