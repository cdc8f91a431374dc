package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// workspacePrefix is the prefix of every folder that a gateway creates in Temp. By it the gateway recognises the folders of killed gateways.
const workspacePrefix = "holdfast-gateway-"

// A workspaceRoot is the folder with the workspaces. Each PDF has a workspace while it is read; it is deleted when the request is answered.
type workspaceRoot struct {
	folder string
	maxAge time.Duration // an older workspace belongs to a killed gateway: no request takes so long

	mu    sync.Mutex
	swept time.Time
}

// A workspace is the folder with the files of one conversion.
type workspace string

func (s workspace) source() string { return filepath.Join(string(s), "source.pdf") }
func (s workspace) result() string { return filepath.Join(string(s), "result.xml") }
func (s workspace) reply() string  { return filepath.Join(string(s), "report.json") }

// create creates a workspace. The caller must call the returned function to delete it.
func (d *workspaceRoot) create() (workspace, func() error, error) {
	if err := d.sweep(time.Now()); err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp(d.folder, workspacePrefix)
	if err != nil {
		return "", nil, fmt.Errorf("cannot create a folder for the PDF: %w", err)
	}
	return workspace(folder), func() error { return os.RemoveAll(folder) }, nil
}

// sweep deletes the workspaces of killed gateways: at the start, and once in every maxAge. Several gateways may share the folder, so the age of a workspace decides.
func (d *workspaceRoot) sweep(now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.swept) < d.maxAge {
		return nil
	}
	d.swept = now
	entries, err := os.ReadDir(d.folder)
	if err != nil {
		return fmt.Errorf("cannot list the folder for temporary files; choose one that exists and is writable: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), workspacePrefix) || now.Sub(info.ModTime()) < d.maxAge {
			continue
		}
		if err := os.RemoveAll(filepath.Join(d.folder, e.Name())); err != nil {
			return fmt.Errorf("cannot delete the temporary files of a killed gateway: %w", err)
		}
	}
	return nil
}
