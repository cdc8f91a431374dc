// Package spool keeps downloads on disk until they are uploaded: one file for each download, with a quota over all of them. Its files survive a crash of the process:
// a download that was complete is adopted by name, and one that was not is deleted when the spool is opened again.
package spool

import "encoding/json"

// A File is a complete download on disk. It does not change until it is removed.
type File struct {
	Name   string          `json:"name"`
	Path   string          `json:"-"`
	Size   int64           `json:"size"`
	SHA256 string          `json:"sha256"`         // in hexadecimal
	Note   json.RawMessage `json:"note,omitempty"` // what the writer gave Commit
}

// Usage says how full a spool is.
type Usage struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"` // complete, in progress and reserved
	Quota int64 `json:"quota"`
}

// A Spool is a folder of spool files. It is safe for concurrent use by one process.
type Spool struct{ dir string }

// Open opens the spool in a folder, which it creates if needed and which no other process may use. It deletes the unfinished files of a process that was killed, and
// keeps the complete ones. quota is the most bytes that all files may have together.
func Open(dir string, quota int64) (*Spool, error) { panic("draft") }

// Create begins a file. size is its expected size, which is reserved at once, or -1. A file with this name is replaced when the new one is committed. The error has the
// code STORAGE_SPOOL_FULL, and costs a job no attempt, while the quota is used up; DOWNLOAD_TOO_LARGE if the file can never fit.
func (s *Spool) Create(name string, size int64) (*Writer, error) { panic("draft") }

// Find returns a complete file. The first time after the spool was opened it verifies the checksum. The error has the code STORAGE_SPOOL_LOST if there is no such file.
func (s *Spool) Find(name string) (File, error) { panic("draft") }

// Remove deletes a file. It is no error if it does not exist.
func (s *Spool) Remove(name string) error { panic("draft") }

// Sweep deletes the complete files for which keep returns false, and returns how many.
func (s *Spool) Sweep(keep func(name string) bool) (int, error) { panic("draft") }

// Usage says how full the spool is.
func (s *Spool) Usage() Usage { panic("draft") }

// Close releases the folder. The files stay.
func (s *Spool) Close() error { panic("draft") }

// A Writer is a file that is being written. End it with Commit or Abort.
type Writer struct{ spool *Spool }

// Write writes to the file, and reserves what the file needs beyond its expected size.
func (w *Writer) Write(p []byte) (int, error) { panic("draft") }

// Commit completes the file, with a note that Find returns.
func (w *Writer) Commit(note any) (File, error) { panic("draft") }

// Abort deletes the file. After Commit it does nothing.
func (w *Writer) Abort() { panic("draft") }
