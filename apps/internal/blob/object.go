package blob

import (
	"context"
	"errors"
	"io"

	"github.com/minio/minio-go/v7"
)

// An object is an open file of a bucket. It requests everything from the current position to the end, and sends another request only after a Seek to another position.
type object struct {
	ctx    context.Context
	bucket *bucket
	name   string
	etag   string
	size   int64
	at     int64         // position of the next read
	body   io.ReadCloser // nil: no request is open
	bodyAt int64
	closed bool
}

func (b *bucket) Open(ctx context.Context, key string) (*File, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	o := &object{ctx: ctx, bucket: b, name: b.prefix + key}
	info, err := o.request()
	if err != nil {
		return nil, err
	}
	o.etag, o.size = info.ETag, info.Size
	return &File{ReadSeekCloser: o, Info: Info{Key: key, Size: info.Size, MadeAt: info.LastModified}}, nil
}

func (o *object) request() (minio.ObjectInfo, error) {
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
		return info, bucketError("cannot read a file", err)
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
		o.cancel()
	}
	if o.body == nil {
		if _, err := o.request(); err != nil {
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
	o.cancel()
	return n, bucketError("cannot read a file", err)
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
		return 0, errors.New("invalid whence: use io.SeekStart, io.SeekCurrent or io.SeekEnd")
	}
	if offset < 0 {
		return 0, errors.New("negative position")
	}
	o.at = offset
	return offset, nil
}

// cancel closes the open request without reading the rest of its answer.
func (o *object) cancel() {
	if o.body != nil {
		_ = o.body.Close()
		o.body = nil
	}
}

func (o *object) Close() error {
	if o.closed {
		return errClosed
	}
	o.cancel()
	o.closed = true
	return nil
}

var errClosed = errors.New("the file is closed")
