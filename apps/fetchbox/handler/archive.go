package handler

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
)

// ArchiveList lists what is in a zip, tar or tar.gz archive, without unpacking it. Zero fields have defaults.
type ArchiveList struct {
	MaxEntries  int   // 100,000 when zero
	MaxUnpacked int64 // bytes of all entries together, which a bomb exceeds; 100 GiB when zero
	MaxRead     int64 // decompressed bytes of a tar.gz that are read to list it; 20 GiB when zero
}

const (
	defaultEntries   = 100_000
	defaultUnpacked  = 100 << 30
	defaultRead      = 20 << 30
	maxDirectory     = 32 << 20 // bytes of the directory of a zip, which is read into memory
	listed           = 100      // names in the result
	longestName      = 200
	zipEndSize       = 22
	zipEndSearch     = zipEndSize + 1<<16
	zip64LocatorSize = 20
)

// Handle finds the format, the number of entries, their size and the first names.
func (a ArchiveList) Handle(ctx context.Context, in Input) (Output, error) {
	if a.MaxEntries <= 0 {
		a.MaxEntries = defaultEntries
	}
	if a.MaxUnpacked <= 0 {
		a.MaxUnpacked = defaultUnpacked
	}
	if a.MaxRead <= 0 {
		a.MaxRead = defaultRead
	}
	file, err := in.open()
	if err != nil {
		return Output{}, err
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, 512)
	n, _ := io.ReadFull(file, head)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return Output{}, err
	}
	l := &list{limits: a}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		l.format, l.media = "zip", "application/zip"
		err = l.zip(file, in.File.Size)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		l.format, l.media = "tar.gz", "application/gzip"
		err = l.tarGzip(ctx, file)
	case n == 512 && string(head[257:262]) == "ustar":
		l.format, l.media = "tar", "application/x-tar"
		if err = l.tar(ctx, file); err == nil { // entries are skipped by seeking
			err = endOfTar(file, in.File.Size)
		}
	default:
		return Output{}, refuse(code.HandlerNotAnArchive, "the resource begins as no archive does that can be listed (zip, tar, tar.gz)")
	}
	if err != nil {
		return Output{}, err
	}
	names, err := json.Marshal(l.names)
	if err != nil {
		return Output{}, err
	}
	return Output{Type: l.media, Meta: map[string]string{
		"format": l.format, "entries": strconv.Itoa(l.entries), "unpacked": strconv.FormatInt(l.unpacked, 10), "unsafe-names": strconv.Itoa(l.unsafe), "names": string(names),
	}}, nil
}

// A list is what is known of an archive so far.
type list struct {
	limits        ArchiveList
	format, media string
	entries       int
	unpacked      int64
	unsafe        int // names that lead out of a folder in which they are unpacked
	names         []string
}

func (l *list) add(name string, size int64) error {
	l.entries++
	if size < 0 || l.unpacked+size < 0 {
		return refuse(code.HandlerNotAnArchive, "an entry of the archive has a size that is not possible")
	}
	l.unpacked += size
	if !safeName(name) {
		l.unsafe++
	}
	if len(l.names) < listed {
		if !utf8.ValidString(name) {
			name = strings.ToValidUTF8(name, "\uFFFD")
		}
		if len(name) > longestName {
			name = strings.ToValidUTF8(name[:longestName], "") + "…"
		}
		l.names = append(l.names, name)
	}
	switch {
	case l.entries > l.limits.MaxEntries:
		return refuse(code.HandlerLimit, "the archive has more than %d entries", l.limits.MaxEntries)
	case l.unpacked > l.limits.MaxUnpacked:
		return refuse(code.HandlerLimit, "the archive unpacks to more than %d bytes", l.limits.MaxUnpacked)
	}
	return nil
}

// safeName reports whether a name stays inside the folder in which an archive is unpacked.
func safeName(name string) bool {
	name = strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':' || strings.Contains(name, "\x00") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return false
		}
	}
	return true
}

// zip lists a zip archive from its directory.
func (l *list) zip(file *os.File, size int64) error {
	if err := checkDirectory(file, size); err != nil {
		return err
	}
	archive, err := zip.NewReader(file, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return refuse(code.HandlerNotAnArchive, "the zip archive cannot be read: %v", err)
	}
	for _, f := range archive.File {
		if f.UncompressedSize64 > 1<<62 {
			return refuse(code.HandlerNotAnArchive, "an entry of the archive has a size that is not possible")
		}
		if err := l.add(f.Name, int64(f.UncompressedSize64)); err != nil {
			return err
		}
	}
	return nil
}

// checkDirectory refuses a zip archive whose directory would need too much memory. The directory ends with its own size, behind which there may be a comment.
func checkDirectory(file io.ReaderAt, size int64) error {
	tail := make([]byte, min(size, zipEndSearch+zip64LocatorSize))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return err
	}
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || at+zipEndSize > len(tail) {
		return refuse(code.HandlerNotAnArchive, "the zip archive has no directory: its end is missing")
	}
	length := int64(binary.LittleEndian.Uint32(tail[at+12:]))
	if length == 1<<32-1 { // the real size is in a record before it
		end := size - int64(len(tail)) + int64(at)
		length = end // at most everything before it
		if locator := at - zip64LocatorSize; locator >= 0 && bytes.HasPrefix(tail[locator:], []byte("PK\x06\x07")) {
			record := make([]byte, 56)
			offset := int64(binary.LittleEndian.Uint64(tail[locator+8:]))
			if _, err := file.ReadAt(record, offset); err == nil && bytes.HasPrefix(record, []byte("PK\x06\x06")) {
				length = int64(binary.LittleEndian.Uint64(record[40:]))
			}
		}
	}
	if length < 0 || length > maxDirectory {
		return refuse(code.HandlerLimit, "the directory of the zip archive has %d bytes, the limit is %d", length, maxDirectory)
	}
	return nil
}

// tarGzip lists a compressed tar archive.
func (l *list) tarGzip(ctx context.Context, file *os.File) error {
	unpacked, err := gzip.NewReader(bufio.NewReaderSize(file, 64<<10))
	if err != nil {
		return refuse(code.HandlerNotAnArchive, "the archive cannot be decompressed: %v", err)
	}
	bounded := &boundedReader{from: unpacked, left: l.limits.MaxRead}
	err = l.tar(ctx, bounded)
	if err == nil && bounded.zeros < tarBlock {
		err = errNoEnd()
	}
	return err
}

// tarBlock is the unit of a tar archive. It ends with at least one block of zeros, which archive/tar does not require.
const tarBlock = 512

func errNoEnd() error {
	return refuse(code.HandlerNotAnArchive, "the tar archive has no end: it was cut")
}

// endOfTar checks the end of a tar archive that is not compressed.
func endOfTar(file io.ReaderAt, size int64) error {
	last := make([]byte, tarBlock)
	if _, err := file.ReadAt(last, max(size-tarBlock, 0)); err != nil || trailingZeros(last) < tarBlock {
		return errNoEnd()
	}
	return nil
}

// trailingZeros returns how many zeros are at the end of some bytes.
func trailingZeros(p []byte) int { return len(p) - len(bytes.TrimRight(p, "\x00")) }

var errRead = errors.New("too many bytes were read")

// A boundedReader ends with errRead when more than a number of bytes is read. It counts the zeros at the end.
type boundedReader struct {
	from  io.Reader
	left  int64
	zeros int // at the end of what was read
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errRead
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if zeros := trailingZeros(p[:n]); zeros < n {
		b.zeros = zeros
	} else {
		b.zeros = min(b.zeros+n, tarBlock)
	}
	return n, err
}

// tar lists a tar archive, to its end: an archive that is cut is refused.
func (l *list) tar(ctx context.Context, from io.Reader) error {
	archive := tar.NewReader(from)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entry, err := archive.Next()
		switch {
		case err == io.EOF:
			return l.drain(ctx, from)
		case errors.Is(err, errRead):
			return refuse(code.HandlerLimit, "the archive has more than %d bytes after decompression", l.limits.MaxRead)
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return refuse(code.HandlerNotAnArchive, "the tar archive cannot be read: %v", err)
		}
		if err := l.add(entry.Name, entry.Size); err != nil {
			return err
		}
	}
}

// drain reads what follows the end of a tar archive, so that the checksum of a compressed one is verified.
func (l *list) drain(ctx context.Context, from io.Reader) error {
	if l.entries == 0 {
		return refuse(code.HandlerNotAnArchive, "the archive is empty, or no tar archive")
	}
	buffer := make([]byte, 64<<10)
	for {
		_, err := from.Read(buffer)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == io.EOF:
			return nil
		case errors.Is(err, errRead):
			return refuse(code.HandlerLimit, "the archive has more than %d bytes after decompression", l.limits.MaxRead)
		case err != nil:
			return refuse(code.HandlerNotAnArchive, "the archive is damaged behind its last entry: %v", err)
		}
	}
}
