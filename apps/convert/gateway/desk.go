package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// sheetPrefix begins the name of every folder that a gateway makes in Temp, so that what a killed one left can be told from what is others'.
const sheetPrefix = "holdfast-gateway-"

// A desk is where PDFs lie while they are read. Each has a folder of its own there, a sheet, which is gone when its request is answered.
type desk struct {
	folder string
	after  time.Duration // a sheet so old is nobody's: no request takes so long

	mu    sync.Mutex
	swept time.Time
}

// A sheet holds what belongs to one conversion.
type sheet string

func (s sheet) source() string { return filepath.Join(string(s), "source.pdf") }
func (s sheet) result() string { return filepath.Join(string(s), "result.xml") }
func (s sheet) report() string { return filepath.Join(string(s), "report.json") }

// lay makes a sheet.
func (d *desk) lay() (sheet, func() error, error) {
	if err := d.sweep(time.Now()); err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp(d.folder, sheetPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("a PDF needs a place while it is read: %w", err)
	}
	return sheet(folder), func() error { return os.RemoveAll(folder) }, nil
}

// sweep removes the sheets of gateways that were killed: at the start, and now and then. Several gateways may have the same folder, so that only age tells.
func (d *desk) sweep(now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.swept) < d.after {
		return nil
	}
	d.swept = now
	entries, err := os.ReadDir(d.folder)
	if err != nil {
		return fmt.Errorf("the folder for PDFs that are being read cannot be listed: name one that is there and may be written: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), sheetPrefix) || now.Sub(info.ModTime()) < d.after {
			continue
		}
		if err := os.RemoveAll(filepath.Join(d.folder, e.Name())); err != nil {
			return fmt.Errorf("what a killed gateway left cannot be removed: %w", err)
		}
	}
	return nil
}
