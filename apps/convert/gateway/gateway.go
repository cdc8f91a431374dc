// Package gateway makes XML of PDFs, over HTTP: POST /convert?mapping=NAME. It reads each PDF in a process of its own, under limits.
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

// Config says how a gateway works. The zero value works.
type Config struct {
	Mappings string        // a folder with mappings of the user's own; none when empty
	Reader   string        // "poppler" or "go"; the best there is when empty
	MaxBytes int64         // of a PDF; 50 MiB when zero
	Timeout  time.Duration // of a conversion; 60 s when zero
	Slots    int           // conversions at once; as many as there are processors when zero. Others wait a little, then get 503
	Temp     string        // where PDFs lie while they are read; the system's place when empty
	Log      *slog.Logger
}

// A gateway is one that serves.
type gateway struct {
	cfg      Config
	program  string // ourselves, to be started again for each PDF
	mappings []mapping
	line     *line
	desk     *desk
	health   health
}

// New makes a gateway. It refuses a folder with a mapping that is wrong, and says everything that is wrong there.
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
		return nil, errors.New("a gateway's MaxBytes, Timeout and Slots cannot be negative: leave them out for what is usual")
	}
	reader, err := choose(cfg.Reader)
	if err != nil {
		return nil, err
	}
	cfg.Reader = reader.Name()
	g := &gateway{cfg: cfg, line: newLine(cfg.Slots, cfg.Timeout), desk: &desk{folder: cfg.Temp, after: 4*cfg.Timeout + time.Minute}}
	if g.mappings, err = allMappings(cfg.Mappings); err != nil {
		return nil, err
	}
	if g.program, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("the gateway cannot find its own program, which it starts for each PDF: %w", err)
	}
	if err := g.desk.sweep(time.Now()); err != nil {
		return nil, err
	}
	return g, nil
}

// readers are those of this machine. Tests add some that behave badly.
var readers = pdf.Readers

// choose finds a reader by its name, or the best.
func choose(name string) (pdf.Reader, error) {
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
	return nil, fmt.Errorf("%w: %q. Here are: %s", pdf.ErrNoReader, name, strings.Join(names, ", "))
}

// find finds a mapping by its name.
func (g *gateway) find(name string) (mapping, bool) {
	at := slices.IndexFunc(g.mappings, func(m mapping) bool { return m.Name == name })
	if at < 0 {
		return mapping{}, false
	}
	return g.mappings[at], true
}
