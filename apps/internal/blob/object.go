package blob

import (
	"context"
	"errors"
	"io"

	"github.com/minio/minio-go/v7"
)

// An object is open for reading. It asks for what is left from where it stands, and asks again only when it is read elsewhere.
type object struct {
	ctx    context.Context
	bucket *bucket
	name   string
	etag   string
	size   int64
	at     int64         // where the next read is
	body   io.ReadCloser // nil: not asked
	bodyAt int64
	closed bool
}

func (b *bucket) Open(ctx context.Context, key string) (*File, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	o := &object{ctx: ctx, bucket: b, name: b.prefix + key}
	info, err := o.ask()
	if err != nil {
		return nil, err
	}
	o.etag, o.size = info.ETag, info.Size
	return &File{ReadSeekCloser: o, Info: Info{Key: key, Size: info.Size, MadeAt: info.LastModified}}, nil
}

func (o *object) ask() (minio.ObjectInfo, error) {
	var get minio.GetObjectOptions
	if o.at > 0 {
		if err := get.SetRange(o.at, 0); err != nil { // to the end
			return minio.ObjectInfo{}, err
		}
	}
	if o.etag != "" {
		if err := get.SetMatchETag(o.etag); err != nil {
			return minio.ObjectInfo{}, err
		}
	}
	body, info, _, err := o.bucket.s3.GetObject(o.ctx, o.bucket.name, o.name, get)
	if err != nil {
		return info, refusal("a file could not be read", err)
	}
	o.body, o.bodyAt = body, o.at
	return info, nil
}

func (o *object) Read(p []byte) (int, error) {
	switch {
	case o.closed:
		return 0, errClosed
	case len(p) == 0:
		return 0, nil
	case o.at >= o.size:
		return 0, io.EOF
	}
	if o.body != nil && o.bodyAt != o.at {
		o.drop()
	}
	if o.body == nil {
		if _, err := o.ask(); err != nil {
			return 0, err
		}
	}
	n, err := o.body.Read(p)
	o.at += int64(n)
	o.bodyAt = o.at
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) && o.at >= o.size:
		return n, io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	o.drop()
	return n, refusal("a file could not be read", err)
}

func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch {
	case o.closed:
		return 0, errClosed
	case whence == io.SeekCurrent:
		offset += o.at
	case whence == io.SeekEnd:
		offset += o.size
	case whence != io.SeekStart:
		return 0, errors.New("a place in a file is counted from its start, its end or the last one")
	}
	if offset < 0 {
		return 0, errors.New("there is no place before the beginning of a file")
	}
	o.at = offset
	return offset, nil
}

// drop hangs up rather than read what nobody wants.
func (o *object) drop() {
	if o.body != nil {
		_ = o.body.Close()
		o.body = nil
	}
}

func (o *object) Close() error {
	if o.closed {
		return errClosed
	}
	o.drop()
	o.closed = true
	return nil
}

var errClosed = errors.New("the file is closed")
