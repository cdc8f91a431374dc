package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/filter"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

const (
	maxStream     = 64 << 20 // decompressed bytes of one stream
	maxAllStreams = 1 << 30  // decompressed bytes of all streams that are read
	maxSteps      = 50_000_000
	maxForms      = 100_000
	maxRefs       = 32 // references to references
)

// A source is an open PDF with access to its objects. A broken object reads as absent. Only exceeding a limit, or the end of the context, is an error.
type source struct {
	ctx   context.Context
	table *model.XRefTable
	limit Limits
	bytes int64 // left to decompress
	steps int   // left to run
	forms int   // left to draw
	text  int64 // bytes of text left to find
	fonts map[int]*font
}

// open checks the beginning and end of a file and reads its structure.
func open(ctx context.Context, file *os.File, l Limits) (*source, error) {
	if l.Pages <= 0 {
		l.Pages = defaultPages
	}
	if l.Text <= 0 {
		l.Text = defaultText
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkEnds(file, info.Size()); err != nil {
		return nil, err
	}
	table, err := readStructureInTime(ctx, io.NewSectionReader(file, 0, info.Size()))
	if err != nil {
		return nil, err
	}
	return &source{ctx: ctx, table: table, limit: l, bytes: maxAllStreams, steps: maxSteps, forms: maxForms, text: l.Text, fonts: map[int]*font{}}, nil
}

// disableConfigDir keeps pdfcpu from creating a folder for its settings in the user's home.
var disableConfigDir = sync.OnceFunc(api.DisableConfigDir)

// readStructureInTime returns when ctx ends, even if pdfcpu does not check it. The goroutine that is left ends with the process.
func readStructureInTime(ctx context.Context, r io.ReadSeeker) (*model.XRefTable, error) {
	type answer struct {
		table *model.XRefTable
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		table, err := readStructure(ctx, r)
		answers <- answer{table, err}
	}()
	select {
	case a := <-answers:
		return a.table, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readStructure lets pdfcpu read the table of objects, repair it if possible, and decrypt with the empty password.
func readStructure(ctx context.Context, r io.ReadSeeker) (table *model.XRefTable, err error) {
	defer recoverAsDamage(&err)
	disableConfigDir()
	conf := model.NewDefaultConfiguration()
	conf.ValidationMode = model.ValidationRelaxed
	conf.Cmd = model.EXTRACTCONTENT
	conf.Offline = true
	conf.Limits = model.ResourceLimits{MaxStreamBytes: 256 << 20, MaxDecodeBytes: maxStream, MaxImagePixels: 1 << 20, MaxImageBytes: 1 << 20, MaxObjectCount: 2_000_000,
		MaxObjectStreamCount: 200_000, MaxObjectStreamFirst: 4 << 20, MaxXRefEntries: 2_000_000, MaxRecursionDepth: 100}
	opened, err := pdfcpu.ReadWithContext(ctx, r, conf)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, translateError(err)
	}
	return opened.XRefTable, nil
}

// translateError translates an error of pdfcpu to an error of this package.
func translateError(err error) error {
	switch {
	case errors.Is(err, pdfcpu.ErrWrongPassword), errors.Is(err, pdfcpu.ErrUnsupportedEncryptionFeature), errors.Is(err, pdfcpu.ErrPermissionDenied),
		errors.Is(err, pdfcpu.ErrOwnerPasswordRequired):
		return ErrLocked
	case errors.Is(err, filter.ErrDecodeLimitExceeded), errors.Is(err, model.ErrMaxRecursionDepthExceeded):
		return ErrTooMuch
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// recoverAsDamage turns a panic while reading a PDF into ErrDamaged.
func recoverAsDamage(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: the reader panicked: %v", ErrDamaged, p)
	}
}

// resolve follows references.
func (s *source) resolve(o types.Object) types.Object {
	for range maxRefs {
		ref, ok := o.(types.IndirectRef)
		if !ok {
			return o
		}
		next, err := s.table.Dereference(ref)
		if err != nil {
			return nil
		}
		o = next
	}
	return nil
}

func (s *source) dict(o types.Object) types.Dict {
	switch o := s.resolve(o).(type) {
	case types.Dict:
		return o
	case types.StreamDict:
		return o.Dict
	case types.ObjectStreamDict:
		return o.Dict
	}
	return nil
}

func (s *source) array(o types.Object) types.Array {
	a, _ := s.resolve(o).(types.Array)
	return a
}

func (s *source) number(o types.Object) (float64, bool) {
	switch o := s.resolve(o).(type) {
	case types.Integer:
		return float64(o), true
	case types.Float:
		return float64(o), true
	}
	return 0, false
}

func (s *source) numbers(o types.Object) []float64 {
	a := s.array(o)
	all := make([]float64, 0, min(len(a), 16))
	for _, o := range a {
		n, ok := s.number(o)
		if !ok {
			return nil
		}
		all = append(all, n)
	}
	return all
}

func (s *source) integer(o types.Object) int {
	n, _ := s.number(o)
	return int(max(-1<<31, min(n, 1<<31-1)))
}

func (s *source) name(o types.Object) string {
	n, _ := s.resolve(o).(types.Name)
	if plain, err := types.DecodeName(string(n)); err == nil {
		return plain
	}
	return string(n)
}

// textOf returns a text string of the document.
func (s *source) textOf(o types.Object) string { return decodeText(s.raw(o)) }

func (s *source) raw(o types.Object) []byte {
	switch o := s.resolve(o).(type) {
	case types.StringLiteral:
		b, err := types.Unescape(string(o))
		if err != nil {
			return nil
		}
		return b
	case types.HexLiteral:
		b, err := o.Bytes()
		if err != nil {
			return nil
		}
		return b
	}
	return nil
}

// content returns the decompressed content of a stream. It counts against the limits.
func (s *source) content(o types.Object) ([]byte, error) {
	d, ok := s.resolve(o).(types.StreamDict)
	if !ok {
		return nil, nil
	}
	if len(d.FilterPipeline) > 8 {
		return nil, ErrTooMuch
	}
	if d.Content == nil {
		err := d.DecodeWithLimit(min(maxStream, s.bytes))
		if errors.Is(err, filter.ErrDecodeLimitExceeded) {
			return nil, ErrTooMuch
		}
		if errors.Is(err, filter.ErrUnsupportedFilter) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if s.bytes -= int64(len(d.Content)); s.bytes <= 0 {
		return nil, ErrTooMuch
	}
	return d.Content, nil
}

// step counts one step against the limit. Every 1024 steps it checks the context.
func (s *source) step() error {
	s.steps--
	if s.steps <= 0 {
		return ErrTooMuch
	}
	if s.steps%1024 == 0 {
		return s.ctx.Err()
	}
	return nil
}

// objectNumber returns the number of the object of a reference, or 0.
func objectNumber(o types.Object) int {
	if ref, ok := o.(types.IndirectRef); ok {
		return ref.ObjectNumber.Value()
	}
	return 0
}
