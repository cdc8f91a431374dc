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
	oneStream  = 64 << 20 // bytes that one stream may become
	allStreams = 1 << 30  // bytes that all that are read may become
	manySteps  = 50_000_000
	manyForms  = 100_000
	manyRefs   = 32 // references that lead to references
)

// A source is an opened PDF: its objects can be asked for. What is broken in it reads as absent; only running out of what a document may cost,
// or out of time, is an error.
type source struct {
	ctx   context.Context
	table *model.XRefTable
	limit Limits
	bytes int64 // that may still be decompressed
	steps int   // that may still be run
	forms int   // that may still be drawn
	text  int64 // bytes that may still be found
	fonts map[int]*font
}

// open looks at a file's shape and reads its structure.
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
	if err := checkShape(file, info.Size()); err != nil {
		return nil, err
	}
	table, err := structureInTime(ctx, io.NewSectionReader(file, 0, info.Size()))
	if err != nil {
		return nil, err
	}
	return &source{ctx: ctx, table: table, limit: l, bytes: allStreams, steps: manySteps, forms: manyForms, text: l.Text, fonts: map[int]*font{}}, nil
}

// withoutFolder keeps pdfcpu from making a folder for its settings in somebody's home.
var withoutFolder = sync.OnceFunc(api.DisableConfigDir)

// structureInTime does not wait for a reading beyond ctx, also when the reading does not look at it. What is left behind ends with the process.
func structureInTime(ctx context.Context, r io.ReadSeeker) (*model.XRefTable, error) {
	type answer struct {
		table *model.XRefTable
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		table, err := structure(ctx, r)
		answers <- answer{table, err}
	}()
	select {
	case a := <-answers:
		return a.table, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// structure has pdfcpu read the table of objects, repair it where it can, and decrypt with the empty password.
func structure(ctx context.Context, r io.ReadSeeker) (table *model.XRefTable, err error) {
	defer guard(&err)
	withoutFolder()
	conf := model.NewDefaultConfiguration()
	conf.ValidationMode = model.ValidationRelaxed
	conf.Cmd = model.EXTRACTCONTENT
	conf.Offline = true
	conf.Limits = model.ResourceLimits{MaxStreamBytes: 256 << 20, MaxDecodeBytes: oneStream, MaxImagePixels: 1 << 20, MaxImageBytes: 1 << 20, MaxObjectCount: 2_000_000,
		MaxObjectStreamCount: 200_000, MaxObjectStreamFirst: 4 << 20, MaxXRefEntries: 2_000_000, MaxRecursionDepth: 100}
	opened, err := pdfcpu.ReadWithContext(ctx, r, conf)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, refusal(err)
	}
	return opened.XRefTable, nil
}

// refusal says in this package's words what pdfcpu found.
func refusal(err error) error {
	switch {
	case errors.Is(err, pdfcpu.ErrWrongPassword), errors.Is(err, pdfcpu.ErrUnsupportedEncryptionFeature), errors.Is(err, pdfcpu.ErrPermissionDenied),
		errors.Is(err, pdfcpu.ErrOwnerPasswordRequired):
		return ErrLocked
	case errors.Is(err, filter.ErrDecodeLimitExceeded), errors.Is(err, model.ErrMaxRecursionDepthExceeded):
		return ErrTooMuch
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// guard makes a panic over a PDF into what it is: a PDF nobody can read.
func guard(err *error) {
	if trouble := recover(); trouble != nil {
		*err = fmt.Errorf("%w: the reader fell over it: %v", ErrDamaged, trouble)
	}
}

// at follows references.
func (s *source) at(o types.Object) types.Object {
	for range manyRefs {
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
	switch o := s.at(o).(type) {
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
	a, _ := s.at(o).(types.Array)
	return a
}

func (s *source) number(o types.Object) (float64, bool) {
	switch o := s.at(o).(type) {
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

func (s *source) whole(o types.Object) int {
	n, _ := s.number(o)
	return int(max(-1<<31, min(n, 1<<31-1)))
}

func (s *source) name(o types.Object) string {
	n, _ := s.at(o).(types.Name)
	if plain, err := types.DecodeName(string(n)); err == nil {
		return plain
	}
	return string(n)
}

// words is a string of the document's own, as text.
func (s *source) words(o types.Object) string { return decodeText(s.raw(o)) }

func (s *source) raw(o types.Object) []byte {
	switch o := s.at(o).(type) {
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

// content is what a stream becomes when it is decompressed. It costs.
func (s *source) content(o types.Object) ([]byte, error) {
	d, ok := s.at(o).(types.StreamDict)
	if !ok {
		return nil, nil
	}
	if len(d.FilterPipeline) > 8 {
		return nil, ErrTooMuch
	}
	if d.Content == nil {
		err := d.DecodeWithLimit(min(oneStream, s.bytes))
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

// step is taken for each thing that is run, and now and then looks whether somebody still waits.
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

// number of the object that a reference leads to; 0 for what is no reference.
func objectNumber(o types.Object) int {
	if ref, ok := o.(types.IndirectRef); ok {
		return ref.ObjectNumber.Value()
	}
	return 0
}
