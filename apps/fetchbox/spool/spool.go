// Package spool keeps downloads on disk until they are uploaded: one file for each download, with a quota over all of them. Its files survive a crash of the process:
// a download that was complete is found by its name, and one that was not is deleted when the spool is opened again.
//
// A complete download is two files: NAME.body, and NAME.json, which describes it and is written last, by a rename. A body without a description is unfinished. Nothing is
// synced to the disk, because every file can be downloaded again: after a restart the checksum of a body is verified before it is used.
package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/failure"
)

// A File is a complete download on disk. It does not change until it is removed or replaced.
type File struct {
	Name   string          `json:"name"`
	Path   string          `json:"-"`
	Size   int64           `json:"size"`
	SHA256 string          `json:"sha256"`         // in hexadecimal
	CRC32C string          `json:"crc32c"`         // in hexadecimal
	Note   json.RawMessage `json:"note,omitempty"` // what the writer gave Commit
}

// Usage says how full a spool is.
type Usage struct {
	Files int   `json:"files"` // complete ones
	Bytes int64 `json:"bytes"` // complete, in progress and reserved
	Quota int64 `json:"quota"`
}

// A Spool is a folder of spool files. It is safe for concurrent use by one process.
type Spool struct {
	dir   string
	quota int64
	lock  io.Closer

	mu       sync.Mutex
	used     int64            // of complete files and of writers
	files    map[string]int64 // sizes of the complete files
	doubtful map[string]bool  // complete files of an earlier process whose checksum was not verified yet
	writing  map[string]bool  // names of the writers that are open
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

const (
	bodyEnding, noteEnding, partEnding = ".body", ".json", ".part"

	step = 1 << 20 // bytes that a file of unknown size reserves at once
)

// Open opens the spool in a folder, which it creates if needed and which no other process may use. It deletes the unfinished files of a process that was killed, and
// keeps the complete ones. quota is the most bytes that all files may have together.
func Open(dir string, quota int64) (*Spool, error) {
	if quota <= 0 {
		return nil, fmt.Errorf("the quota of the spool is %d bytes: give a positive number", quota)
	}
	if dir == "" {
		return nil, errors.New("no folder for the spool is set: give one on a disk with enough space")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the folder of the spool: %w", err)
	}
	lock, err := lockFolder(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, err
	}
	s := &Spool{dir: dir, quota: quota, lock: lock, files: map[string]int64{}, doubtful: map[string]bool{}, writing: map[string]bool{}}
	if err := s.adopt(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read the folder of the spool: %w", err), lock.Close())
	}
	return s, nil
}

// adopt finds the complete files of an earlier process and deletes the others. It leaves files alone that a spool does not write.
func (s *Spool) adopt() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, isNote := strings.CutSuffix(e.Name(), noteEnding)
		if !isNote || !validName.MatchString(name) {
			continue
		}
		if f, err := s.read(name); err == nil {
			s.files[name], s.doubtful[name] = f.Size, true
			s.used += f.Size
		}
	}
	for _, e := range entries {
		ending := filepath.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ending)
		_, complete := s.files[name]
		ours := ending == partEnding || (ending == bodyEnding || ending == noteEnding) && !complete
		if !ours || !e.Type().IsRegular() || !validName.MatchString(strings.TrimSuffix(name, noteEnding)) {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// read reads the description of a complete file, and compares its size.
func (s *Spool) read(name string) (f File, err error) {
	text, err := os.ReadFile(s.path(name, noteEnding))
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, err
	}
	f.Name, f.Path = name, s.path(name, bodyEnding)
	info, err := os.Stat(f.Path)
	if err == nil && info.Size() != f.Size {
		err = errors.New("its size is not that of the description")
	}
	return f, err
}

func (s *Spool) path(name, ending string) string { return filepath.Join(s.dir, name+ending) }

// Find returns a complete file. A file of an earlier process is returned only if it has its checksum; otherwise it is deleted. The error has the code STORAGE_SPOOL_LOST
// if there is no such file.
func (s *Spool) Find(name string) (File, error) {
	s.mu.Lock()
	_, known := s.files[name]
	doubtful := s.doubtful[name]
	s.mu.Unlock()
	lost := failure.WithCode(errors.New("there is no complete spool file with this name"), code.StorageSpoolLost)
	if !known {
		return File{}, lost
	}
	f, err := s.read(name)
	if err == nil && doubtful {
		err = f.verify()
	}
	if err != nil {
		return File{}, errors.Join(lost, s.Remove(name))
	}
	s.mu.Lock()
	delete(s.doubtful, name)
	s.mu.Unlock()
	return f, nil
}

func (f File) verify() error {
	file, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	sum, size, err := Sum(file)
	if err == nil && (sum != f.SHA256 || size != f.Size) {
		err = errors.New("its checksum is not that of the description")
	}
	return err
}

// Sum returns the checksum of a file, in hexadecimal, and its size.
func Sum(file *os.File) (sum string, size int64, err error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	all := sha256.New()
	size, err = io.Copy(all, file)
	return hex.EncodeToString(all.Sum(nil)), size, err
}

// Remove deletes a file. It is no error if it does not exist.
func (s *Spool) Remove(name string) error {
	if !validName.MatchString(name) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(name)
}

// remove is Remove under the lock. The description goes first: a body alone is unfinished.
func (s *Spool) remove(name string) error {
	for _, ending := range []string{noteEnding, bodyEnding} {
		if err := os.Remove(s.path(name, ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fileError("cannot delete a spool file", err)
		}
	}
	s.used -= s.files[name]
	delete(s.files, name)
	delete(s.doubtful, name)
	return nil
}

// Sweep deletes the complete files for which keep returns false, and returns how many. keep must know every download that may still be uploaded, also one that completes
// meanwhile.
func (s *Spool) Sweep(keep func(name string) bool) (deleted int, err error) {
	s.mu.Lock()
	var names []string
	for name := range s.files {
		names = append(names, name)
	}
	s.mu.Unlock()
	for _, name := range names {
		if keep(name) {
			continue
		}
		if err := s.Remove(name); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}

// Usage says how full the spool is.
func (s *Spool) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Usage{Files: len(s.files), Bytes: s.used, Quota: s.quota}
}

// Close releases the folder. The files stay.
func (s *Spool) Close() error { return s.lock.Close() }

// reserve reserves bytes for a writer.
func (s *Spool) reserve(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+n > s.quota {
		return full(fmt.Errorf("%d bytes do not fit: the spool has %d of %d bytes in use", n, s.used, s.quota))
	}
	s.used += n
	return nil
}

func (s *Spool) release(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
}

// full is the error of a spool or a disk without space. It costs a job no attempt, because uploads free the space.
func full(err error) error {
	return failure.Throttled(failure.WithCode(err, code.StorageSpoolFull), fullWait)
}

// fileError gives an error of the file system its code, and removes the path from its text.
func fileError(doing string, err error) error {
	cause := err
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		cause = path.Err
	} else if link, ok := errors.AsType[*os.LinkError](err); ok {
		cause = link.Err
	}
	err = fmt.Errorf("%s: %w", doing, cause)
	if errors.Is(cause, syscall.ENOSPC) {
		return full(err)
	}
	return failure.WithCode(err, code.StorageSpoolError)
}
