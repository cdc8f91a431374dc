// Package gateway is an HTTP service that converts PDFs to XML: POST /convert?mapping=NAME. It reads each PDF in a separate process with limits on memory and time.
package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// Config configures a gateway. The zero value works.
type Config struct {
	Mappings string        // a folder with custom mappings; none when empty
	Reader   string        // "poppler" or "go"; when empty, poppler if it is installed
	MaxBytes int64         // of a PDF; 50 MiB when zero
	Timeout  time.Duration // of a conversion; 60 s when zero
	Slots    int           // conversions at once; the number of CPUs when zero. Others wait up to 10 s and then get 503
	Temp     string        // folder for temporary files; the system's when empty
	Log      *slog.Logger
}

type gateway struct {
	cfg      Config
	program  string // this executable, which is started for each PDF
	mappings []mapping
	queue    *waitQueue
	temp     *workspaceRoot
	health   healthCache
}

// New returns the handler of a gateway. If custom mappings have mistakes, the error names all of them.
func New(cfg Config) (http.Handler, error) {
	g, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return g.routes(), nil
}

func open(cfg Config) (*gateway, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 50<<20)
	cfg.Timeout = cmp.Or(cfg.Timeout, time.Minute)
	cfg.Slots = cmp.Or(cfg.Slots, runtime.NumCPU())
	cfg.Temp = cmp.Or(cfg.Temp, os.TempDir())
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxBytes < 0 || cfg.Timeout < 0 || cfg.Slots < 0 {
		return nil, errors.New("gateway: MaxBytes, Timeout and Slots must not be negative; leave them at zero for the defaults")
	}
	reader, err := chooseReader(cfg.Reader)
	if err != nil {
		return nil, err
	}
	cfg.Reader = reader.Name()
	g := &gateway{cfg: cfg, queue: newWaitQueue(cfg.Slots, cfg.Timeout), temp: &workspaceRoot{folder: cfg.Temp, maxAge: 4*cfg.Timeout + time.Minute}}
	if g.mappings, err = allMappings(cfg.Mappings); err != nil {
		return nil, err
	}
	if g.program, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("cannot find the gateway's own executable, which it starts for each PDF: %w", err)
	}
	if err := g.temp.sweep(time.Now()); err != nil {
		return nil, err
	}
	return g, nil
}

// readers returns the readers of this machine. Tests add readers that misbehave.
var readers = pdf.Readers

// chooseReader returns a reader by its name, or the first when the name is empty.
func chooseReader(name string) (pdf.Reader, error) {
	all := readers()
	for _, r := range all {
		if name == "" || r.Name() == name {
			return r, nil
		}
	}
	if name == "poppler" {
		return nil, pdf.ErrNoPoppler
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name())
	}
	return nil, fmt.Errorf("%w: %q; available: %s", pdf.ErrNoReader, name, strings.Join(names, ", "))
}

// find returns a mapping by its name.
func (g *gateway) find(name string) (mapping, bool) {
	at := slices.IndexFunc(g.mappings, func(m mapping) bool { return m.Name == name })
	if at < 0 {
		return mapping{}, false
	}
	return g.mappings[at], true
}
