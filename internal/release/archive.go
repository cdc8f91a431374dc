package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"time"
)

// packed is a file of an archive.
type packed struct {
	name string
	mode fs.FileMode
	data []byte
}

// packTar returns a compressed tar archive. Its bytes depend on nothing but the files and the time.
func packTar(files []packed, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Format: tar.FormatUSTAR, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: at.Truncate(time.Second)}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), compressed.Close()) // only now the bytes are complete
	return out.Bytes(), err
}

// packZip returns a zip archive. Its bytes depend on nothing but the files and the time.
func packZip(files []packed, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(f.mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := archive.Close() // only now the bytes are complete
	return out.Bytes(), err
}
