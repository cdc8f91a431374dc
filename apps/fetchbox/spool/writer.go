package spool

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"os"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/failure"
)

// fullWait is how long a job waits when the spool is full.
const fullWait = 5 * time.Second

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Writer is a file that is being written, by one goroutine. End it with Commit or Abort.
type Writer struct {
	spool    *Spool
	name     string
	file     *os.File
	sum      hash.Hash
	crc      hash.Hash32
	size     int64
	reserved int64
	ended    bool
}

// Create begins a file. size is its expected size, which is reserved at once, or -1. A file with this name is replaced when the new one is committed. The error has the
// code STORAGE_SPOOL_FULL, and costs a job no attempt, while the quota is used up; DOWNLOAD_TOO_LARGE if the file can never fit.
func (s *Spool) Create(name string, size int64) (*Writer, error) {
	if !validName.MatchString(name) {
		return nil, failure.WithCode(fmt.Errorf("%.60q is not a valid name of a spool file: use up to 100 letters, digits, dashes and underscores", name), code.SystemError)
	}
	if size > s.quota {
		return nil, failure.WithCode(fmt.Errorf("the resource has %d bytes, and the quota of the spool is %d", size, s.quota), code.DownloadTooLarge)
	}
	s.mu.Lock()
	open := s.writing[name]
	s.writing[name] = true
	s.mu.Unlock()
	if open {
		return nil, failure.WithCode(errors.New("another attempt is still writing this spool file"), code.StorageSpoolError)
	}
	w := &Writer{spool: s, name: name, sum: sha256.New(), crc: crc32.New(castagnoli)}
	if err := w.reserve(max(size, 0)); err != nil {
		w.Abort()
		return nil, err
	}
	// Each attempt has a file of its own, so that a file that another process of the machine keeps open is never written again.
	file, err := os.OpenFile(s.path(name+"-"+rand.Text()[:8], partEnding), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		w.Abort()
		return nil, fileError("cannot create a spool file", err)
	}
	w.file = file
	return w, nil
}

func (w *Writer) reserve(n int64) error {
	if err := w.spool.reserve(n); err != nil {
		return err
	}
	w.reserved += n
	return nil
}

// Write writes to the file, and reserves what the file needs beyond its expected size.
func (w *Writer) Write(p []byte) (int, error) {
	if need := w.size + int64(len(p)) - w.reserved; need > 0 {
		err := w.reserve(max(need, step))
		if err != nil {
			err = w.reserve(need) // the last bytes of the quota
		}
		if err != nil {
			return 0, w.exhausted(err)
		}
	}
	n, err := w.file.Write(p)
	_, _ = w.sum.Write(p[:n])
	_, _ = w.crc.Write(p[:n])
	w.size += int64(n)
	if err != nil {
		return n, fileError("cannot write a spool file", err)
	}
	return n, nil
}

// exhausted returns the error of a file of unknown size that alone is larger than the quota, or else the error of a full spool.
func (w *Writer) exhausted(err error) error {
	if w.size+step > w.spool.quota && w.spool.Usage().Bytes == w.reserved {
		return failure.WithCode(fmt.Errorf("the resource has more than %d bytes, and the quota of the spool is %d", w.size, w.spool.quota), code.DownloadTooLarge)
	}
	return err
}

// Size returns the number of bytes written so far.
func (w *Writer) Size() int64 { return w.size }

// SHA256 returns the checksum of the bytes written so far, in hexadecimal.
func (w *Writer) SHA256() string { return hex.EncodeToString(w.sum.Sum(nil)) }

// Commit completes the file, with a note that Find returns. After an error the file does not exist.
func (w *Writer) Commit(note any) (File, error) {
	defer w.Abort()
	text, err := json.Marshal(note)
	if err != nil {
		return File{}, failure.WithCode(fmt.Errorf("the note of a spool file cannot be encoded: %w", err), code.SystemError)
	}
	s := w.spool
	f := File{Name: w.name, Path: s.path(w.name, bodyEnding), Size: w.size, SHA256: w.SHA256(), CRC32C: hex.EncodeToString(w.crc.Sum(nil)), Note: text}
	described, err := json.Marshal(f)
	if err != nil {
		return File{}, failure.WithCode(err, code.SystemError)
	}
	if err := w.file.Close(); err != nil {
		return File{}, fileError("cannot write a spool file", err)
	}
	part := s.path(w.name+noteEnding, partEnding)
	if err := os.WriteFile(part, described, 0o600); err != nil {
		_ = os.Remove(part)
		return File{}, fileError("cannot write a spool file", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.remove(w.name); err != nil {
		return File{}, err
	}
	if err := errors.Join(os.Rename(w.file.Name(), f.Path), os.Rename(part, s.path(w.name, noteEnding))); err != nil {
		_ = s.remove(w.name)
		return File{}, fileError("cannot name a spool file", err)
	}
	s.used += w.size - w.reserved
	s.files[w.name] = w.size
	w.reserved = 0 // it belongs to the complete file now
	return f, nil
}

// Abort deletes the file. After Commit it does nothing.
func (w *Writer) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	if w.file != nil {
		_ = w.file.Close()
		_ = os.Remove(w.file.Name()) // after Commit there is no file with this name
	}
	w.spool.release(w.reserved)
	w.spool.mu.Lock()
	delete(w.spool.writing, w.name)
	w.spool.mu.Unlock()
}
