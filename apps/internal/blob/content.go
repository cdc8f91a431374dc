package blob

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// Content is a file on this machine that PutFile stores. From, Size and SHA256 are required.
type Content struct {
	From    io.ReaderAt
	Size    int64
	SHA256  string            // in hexadecimal; the storage receives exactly these bytes, or stores nothing
	CRC32C  string            // in hexadecimal, if it is known: object storage verifies it with less work than SHA256
	Type    string            // media type; application/octet-stream when empty. A folder does not keep it
	Meta    map[string]string // names of lower-case letters, digits and dashes. A folder does not keep it
	Replace bool              // an existing file with this key is replaced, in one step
}

// ErrChanged means that Content.From does not have the bytes that Size and SHA256 announce.
var ErrChanged = errors.New("the file does not have the announced size and checksum")

const (
	maxMeta  = 2 << 10   // bytes of all names and values: the limit of Amazon S3 for an object
	partSize = 128 << 20 // bytes of a part; more for files that would have over maxParts
	maxParts = 9000      // S3 allows 10,000

	shaMark = "Holdfast-Sha256" // the metadata that holds the checksum of a file
)

// largeFile is the size from which a file is stored in parts: a lost connection then costs a part and not the whole file, and S3 refuses a whole file of over 5 GiB. A
// smaller file is one request, for which its checksum is known already; parts have to be read twice. Tests lower it.
var largeFile, filePart int64 = 1 << 30, partSize

var (
	hexCRC32C = regexp.MustCompile(`^([0-9a-f]{8})?$`)
	hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	metaName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,60}$`)
)

func (c Content) check() error {
	size := 0
	for name, value := range c.Meta {
		size += len(name) + len(value)
		if !metaName.MatchString(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return invalid(fmt.Errorf("the metadata %.60q is not valid: use a name of lower-case letters, digits and dashes, and a value of printable ASCII", name))
		}
	}
	switch {
	case size > maxMeta:
		return invalid(fmt.Errorf("the metadata has %d bytes, the limit is %d", size, maxMeta))
	case c.From == nil || c.Size < 0 || !hexSHA256.MatchString(c.SHA256) || !hexCRC32C.MatchString(c.CRC32C):
		return errors.New("PutFile needs From, Size, SHA256 as 64 hexadecimal digits, and CRC32C as 8 or none")
	}
	return c.checkSize()
}

// checkSize refuses a file that is shorter or longer than announced, before anything is sent.
func (c Content) checkSize() error {
	var one [1]byte
	if n, err := c.From.ReadAt(one[:], c.Size); n > 0 || err != io.EOF {
		return errors.Join(ErrChanged, err)
	}
	if n, err := c.From.ReadAt(one[:], max(c.Size-1, 0)); c.Size > 0 && n == 0 {
		return errors.Join(ErrChanged, err)
	}
	return nil
}

// reader returns a reader of the content that ends with ErrChanged instead of io.EOF if the bytes were not those announced.
func (c Content) reader() io.Reader {
	return &checkedReader{from: io.NewSectionReader(c.From, 0, c.Size), sum: sha256.New(), left: c.Size, want: c.SHA256}
}

type checkedReader struct {
	from io.Reader
	sum  hash.Hash
	left int64
	want string
}

func (r *checkedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	_, _ = r.sum.Write(p[:n])
	r.left -= int64(n)
	if err == io.EOF && (r.left != 0 || hex.EncodeToString(r.sum.Sum(nil)) != r.want) {
		err = ErrChanged
	}
	return n, err
}

// sum returns the checksum of everything that a reader returns.
func sum(from io.Reader) (string, error) {
	all := sha256.New()
	_, err := io.Copy(all, from)
	return hex.EncodeToString(all.Sum(nil)), err
}

func (f *folder) PutFile(ctx context.Context, key string, c Content) (Info, error) {
	if err := c.check(); err != nil {
		return Info{}, err
	}
	info, err := f.put(ctx, key, c.reader(), c.Replace)
	if !errors.Is(err, ErrExists) {
		return info, err
	}
	file, openErr := f.Open(ctx, key)
	if openErr != nil {
		return Info{}, openErr
	}
	defer func() { _ = file.Close() }()
	if file.Size != c.Size {
		return Info{}, err
	}
	if found, readErr := sum(file); readErr != nil || found != c.SHA256 {
		return Info{}, errors.Join(readErr, err)
	}
	return file.Info, nil
}

func (f *folder) Sweep(ctx context.Context, than time.Duration) (deleted int, err error) {
	for info, err := range f.Older(ctx, than, "") {
		if err != nil {
			return deleted, err
		}
		if !info.Part {
			continue
		}
		if err := f.Delete(ctx, info.Key); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}

func (b *bucket) PutFile(ctx context.Context, key string, c Content) (Info, error) {
	if err := errors.Join(checkKey(key), c.check()); err != nil {
		return Info{}, err
	}
	if !c.Replace {
		if err := b.checkConditionalWrites(ctx); err != nil {
			return Info{}, err
		}
	}
	put := b.putWhole
	if c.Size > largeFile {
		put = b.putParts
	}
	mark := newMark()
	err := put(ctx, key, c, mark)
	if errors.Is(err, ErrChanged) {
		return Info{}, err
	}
	if err != nil {
		failed := err
		if err = b.resolvePut(ctx, key, mark, err); errors.Is(err, ErrExists) {
			err = b.resolveExisting(ctx, key, c, failed)
		}
	}
	if err != nil {
		return Info{}, err
	}
	return Info{Key: key, Size: c.Size, MadeAt: time.Now()}, nil
}

// resolveExisting decides about a file that could not be stored while a file of another writer has its key. failed is the error of the storage.
func (b *bucket) resolveExisting(ctx context.Context, key string, c Content, failed error) error {
	found, err := b.s3.StatObject(ctx, b.name, b.prefix+key, minio.StatObjectOptions{})
	switch {
	case err == nil && found.Size == c.Size && found.UserMetadata[shaMark] == c.SHA256:
		return nil
	case c.Replace:
		return bucketError("cannot store a file", failed)
	case err != nil:
		return bucketError("cannot check a file", err)
	}
	return ErrExists
}

// options returns how an object is created.
func (c Content) options(mark string) minio.PutObjectOptions {
	o := minio.PutObjectOptions{ContentType: c.Type, UserMetadata: map[string]string{putMark: mark, shaMark: c.SHA256}, DisableContentSha256: true}
	if o.ContentType == "" {
		o.ContentType = "application/octet-stream"
	}
	for name, value := range c.Meta {
		o.UserMetadata[name] = value
	}
	return o
}

// putWhole stores a file in one request with a checksum, so the storage refuses other bytes. On a connection that others could change, the checksum is the one that is
// part of the request's signature. Elsewhere CRC32C does: it needs no more time than copying, on both sides.
func (b *bucket) putWhole(ctx context.Context, key string, c Content, mark string) error {
	o, signed := c.options(mark), c.SHA256
	if c.CRC32C != "" && b.private {
		sum, err := hex.DecodeString(c.CRC32C)
		if err != nil {
			return err
		}
		o.UserMetadata["x-amz-checksum-crc32c"], signed = base64.StdEncoding.EncodeToString(sum), ""
	}
	if !c.Replace {
		o.SetMatchETagExcept("*")
	}
	_, err := b.s3.PutObject(ctx, b.name, b.prefix+key, io.NewSectionReader(c.From, 0, c.Size), c.Size, "", signed, o)
	if isChecksumRefusal(err) {
		return fmt.Errorf("%w: the storage received other bytes", ErrChanged)
	}
	return err
}

// isChecksumRefusal reports whether the storage refused bytes that do not have the announced checksum.
func isChecksumRefusal(err error) bool {
	answer, answered := errors.AsType[minio.ErrorResponse](err)
	return answered && (answer.Code == "XAmzContentSHA256Mismatch" || answer.Code == "BadDigest" || answer.Code == "XAmzContentChecksumMismatch")
}

// putParts stores a large file in parts. The object appears when the last request, which names all parts, succeeds. If that does not happen, the parts are deleted.
func (b *bucket) putParts(ctx context.Context, key string, c Content, mark string) error {
	name := b.prefix + key
	id, err := b.s3.NewMultipartUpload(ctx, b.name, name, c.options(mark))
	if err != nil {
		return err
	}
	parts, err := b.sendParts(ctx, name, id, c)
	if err == nil {
		o := minio.PutObjectOptions{}
		if !c.Replace {
			o.SetMatchETagExcept("*")
		}
		_, err = b.s3.CompleteMultipartUpload(ctx, b.name, name, id, parts, o)
	}
	if err != nil {
		// If the answer to the last request was lost, the object may exist: then there is nothing to delete, and the caller finds its mark.
		_ = b.abort(ctx, name, id) // Sweep deletes what remains
	}
	return err
}

func (b *bucket) sendParts(ctx context.Context, name, id string, c Content) (parts []minio.CompletePart, err error) {
	size := max(filePart, (c.Size+maxParts-1)/maxParts)
	whole := sha256.New()
	for at := int64(0); at < c.Size; at += size {
		length := min(size, c.Size-at)
		one := sha256.New()
		// The first reading, from the page cache, finds the checksum of the part.
		if _, err := io.Copy(io.MultiWriter(one, whole), io.NewSectionReader(c.From, at, length)); err != nil {
			return nil, err
		}
		o := minio.PutObjectPartOptions{Sha256Hex: hex.EncodeToString(one.Sum(nil)), DisableContentSha256: true}
		sent, err := b.s3.PutObjectPart(ctx, b.name, name, id, len(parts)+1, io.NewSectionReader(c.From, at, length), length, o)
		if err != nil {
			return nil, err
		}
		parts = append(parts, minio.CompletePart{PartNumber: len(parts) + 1, ETag: sent.ETag})
	}
	if hex.EncodeToString(whole.Sum(nil)) != c.SHA256 {
		return nil, ErrChanged
	}
	return parts, nil
}

// abort deletes the parts of an unfinished upload. A part that was still on its way may be stored after an abort, so it is repeated until the storage does not know the
// upload.
func (b *bucket) abort(ctx context.Context, name, id string) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for range 5 {
		err = b.s3.AbortMultipartUpload(ctx, b.name, name, id)
		if _, err := b.s3.ListObjectParts(ctx, b.name, name, id, 0, 1); isUnknownUpload(err) {
			return nil
		}
		if !sleep(ctx, time.Second) {
			break
		}
	}
	return errors.Join(errors.New("an unfinished upload could not be deleted: it is tried again at the next sweep"), bucketError("cannot delete parts", err))
}

func isUnknownUpload(err error) bool {
	answer, answered := errors.AsType[minio.ErrorResponse](err)
	return answered && (answer.Code == minio.NoSuchUpload || answer.StatusCode == http.StatusNotFound && answer.Code != minio.NoSuchBucket)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *bucket) Sweep(ctx context.Context, than time.Duration) (deleted int, err error) {
	before := time.Now().Add(-than)
	for key, id := "", ""; ; {
		list, err := b.s3.ListMultipartUploads(ctx, b.name, b.prefix, key, id, "", 1000)
		if err != nil {
			return deleted, bucketError("cannot list unfinished files", err)
		}
		for _, u := range list.Uploads {
			// The prefix may be the beginning of other names: only keys of this store are its own.
			if checkKey(strings.TrimPrefix(u.Key, b.prefix)) != nil || !u.Initiated.Before(before) {
				continue
			}
			if err := b.abort(ctx, u.Key, u.UploadID); err != nil {
				return deleted, err
			}
			deleted++
		}
		if !list.IsTruncated {
			return deleted, nil
		}
		key, id = list.NextKeyMarker, list.NextUploadIDMarker
	}
}
